// EASY backfilling on a pool of cores, written plainly: the yardstick of `python -m bench.native`.
//
// Input, binary: n, then n rows of submit, runtime, walltime (us), cores, all int64, by submission; then the pool's cores.
// Output: processor time of the fastest of `rounds` replays, us; sum of the starts, us.
//
// First come, first served; where the first job does not fit, it has a reservation: the earliest time at which, by the walltimes of the
// running jobs, enough cores will be free. Others start in order if they fit now and end by that time, or need none of its cores.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <queue>
#include <set>
#include <vector>

struct Job {
    int64_t submit, runtime, walltime, cores;
};

struct End {
    int64_t time;
    int job;
    bool operator<(const End& other) const { return time > other.time || (time == other.time && job > other.job); }
};

struct Planned {
    int64_t time;
    int job;
    bool operator<(const Planned& other) const { return time < other.time || (time == other.time && job < other.job); }
};

static int64_t replay(const std::vector<Job>& jobs, int64_t pool, std::vector<int64_t>& start) {
    const int n = (int)jobs.size();
    std::vector<int> next(n + 1), before(n + 1);  // the queue, a ring through n
    next[n] = before[n] = n;
    std::priority_queue<End> ends;
    std::set<Planned> planned;
    int64_t free = pool, waiting = 0;
    int coming = 0;
    auto begin = [&](int j, int64_t now) {
        next[before[j]] = next[j];
        before[next[j]] = before[j];
        start[j] = now;
        free -= jobs[j].cores;
        waiting--;
        ends.push({now + jobs[j].runtime, j});
        planned.insert({now + jobs[j].walltime, j});
    };
    while (coming < n || !ends.empty()) {
        int64_t now = INT64_MAX;
        if (coming < n) now = jobs[coming].submit;
        if (!ends.empty() && ends.top().time < now) now = ends.top().time;
        while (!ends.empty() && ends.top().time == now) {
            const int j = ends.top().job;
            ends.pop();
            free += jobs[j].cores;
            planned.erase({start[j] + jobs[j].walltime, j});
        }
        for (; coming < n && jobs[coming].submit == now; coming++) {
            before[coming] = before[n];
            next[before[n]] = coming;
            next[coming] = n;
            before[n] = coming;
            waiting++;
        }
        while (next[n] != n && jobs[next[n]].cores <= free) begin(next[n], now);
        if (waiting < 2 || free == 0) continue;
        const int head = next[n];
        int64_t then = free, shadow = now;
        for (const Planned& p : planned) {
            if (then >= jobs[head].cores && p.time > shadow) break;
            then += jobs[p.job].cores;
            shadow = p.time;
        }
        int64_t extra = then - jobs[head].cores;
        for (int j = next[head]; j != n && free > 0;) {
            const int after = next[j];
            const bool ends_before = now + jobs[j].walltime <= shadow;
            if (jobs[j].cores <= free && (ends_before || jobs[j].cores <= extra)) {
                if (!ends_before) extra -= jobs[j].cores;
                begin(j, now);
            }
            j = after;
        }
    }
    int64_t sum = 0;
    for (int j = 0; j < n; j++) sum += start[j];
    return sum;
}

int main(int, char** argv) {
    FILE* file = fopen(argv[1], "rb");
    int64_t n = 0, pool = 0;
    if (!file || fread(&n, 8, 1, file) != 1) return 2;
    std::vector<Job> jobs(n);
    if (fread(jobs.data(), sizeof(Job), n, file) != (size_t)n || fread(&pool, 8, 1, file) != 1) return 2;
    std::vector<int64_t> start(n);
    double least = 1e18;
    int64_t sum = 0;
    for (int round = 0; round < atoi(argv[2]); round++) {
        const clock_t began = clock();
        sum = replay(jobs, pool, start);
        const double taken = (double)(clock() - began) / CLOCKS_PER_SEC * 1e6;
        if (taken < least) least = taken;
    }
    printf("%.1f %lld\n", least, (long long)sum);
}
