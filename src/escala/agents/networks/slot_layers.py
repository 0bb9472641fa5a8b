"""The two layers that look at every slot of a compact observation, compiled: their hidden numbers (jobs x units) stay
in the processor's nearest cache, where torch writes a table of them for every step of the formula and reads it again
(what that gains: docs/design.md).

Shapes: numbers [batch, slots x features, and more behind them]; weights as torch keeps them, [units, features]. An
empty slot's features are all 0 (the first of them tells: a job's is above 0), so that all empty slots of a row are
worked through as one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from escala.compile import summed
from escala.errors import EscalaError


@summed
def _hidden(numbers: Any, weight: Any, base: Any, out: Any) -> None:
    """out [units] = weight' numbers + base, for one slot. weight [features, units]."""
    for j in range(base.shape[0]):
        out[j] = base[j]
    for i in range(weight.shape[0]):
        x = numbers[i]
        for j in range(base.shape[0]):
            out[j] += x * weight[i, j]


@summed
def _add_mean(numbers: Any, slots: int, weight: Any, bias: Any, room: Any, out: Any) -> None:
    """out [batch, units]: the mean over the slots of relu(weight' s + bias). room: [units]."""
    features, units = weight.shape
    zero, share = weight.dtype.type(0), weight.dtype.type(1) / weight.dtype.type(slots)
    for b in range(numbers.shape[0]):
        empty = zero
        for j in range(units):
            out[b, j] = zero
        for k in range(slots):
            at = k * features
            if numbers[b, at] > zero:
                _hidden(numbers[b, at : at + features], weight, bias, room)
                for j in range(units):
                    out[b, j] += max(room[j], zero)
            else:
                empty += weight.dtype.type(1)
        for j in range(units):
            out[b, j] = (out[b, j] + empty * max(bias[j], zero)) * share


@summed
def _mean_back(
    numbers: Any, slots: int, weight: Any, bias: Any, room: Any, grad: Any, of_weight: Any, of_bias: Any
) -> None:
    """Add to of_weight [features, units] and of_bias what `grad` [batch, units], the gradient along the mean, makes of
    them."""
    features, units = weight.shape
    zero, share = weight.dtype.type(0), weight.dtype.type(1) / weight.dtype.type(slots)
    for b in range(numbers.shape[0]):
        empty = zero
        for k in range(slots):
            at = k * features
            if numbers[b, at] > zero:
                _hidden(numbers[b, at : at + features], weight, bias, room)
                for j in range(units):
                    room[j] = grad[b, j] * share if room[j] > zero else zero
                    of_bias[j] += room[j]
                for i in range(features):
                    x = numbers[b, at + i]
                    for j in range(units):
                        of_weight[i, j] += x * room[j]
            else:
                empty += share
        for j in range(units):
            if bias[j] > zero:
                of_bias[j] += empty * grad[b, j]


@summed
def _prefer(numbers: Any, weight: Any, bias: Any, context: Any, score: Any, room: Any, out: Any) -> None:
    """out [batch, slots] = score . relu(weight' s + bias + context). room: [2, units]."""
    features, units = weight.shape
    zero = weight.dtype.type(0)
    for b in range(numbers.shape[0]):
        of_empty = zero
        for j in range(units):
            room[0, j] = bias[j] + context[b, j]
        # a loop of its own: beside a write, the order of a sum depends on where its arrays lie in memory
        for j in range(units):
            of_empty += score[j] * max(room[0, j], zero)
        for k in range(out.shape[1]):
            at = k * features
            out[b, k] = of_empty
            if numbers[b, at] > zero:
                _hidden(numbers[b, at : at + features], weight, room[0], room[1])
                of_job = zero
                for j in range(units):
                    of_job += score[j] * max(room[1, j], zero)
                out[b, k] = of_job


@summed
def _prefer_back(
    numbers: Any, weight: Any, bias: Any, context: Any, score: Any, room: Any, grad: Any, out: Any
) -> None:
    """Add to out, (of_weight [features, units], of_context [batch, units], of_score [units]), what `grad` [batch,
    slots], the gradient along the preferences, makes of them."""
    of_weight, of_context, of_score = out
    features, units = weight.shape
    zero = weight.dtype.type(0)
    for b in range(numbers.shape[0]):
        for j in range(units):
            room[0, j] = bias[j] + context[b, j]
        at_empty = zero
        for k in range(grad.shape[1]):
            at, slope = k * features, grad[b, k]
            if numbers[b, at] > zero:
                _hidden(numbers[b, at : at + features], weight, room[0], room[1])
                for j in range(units):
                    above = room[1, j] > zero
                    of_score[j] += slope * room[1, j] if above else zero
                    room[1, j] = slope * score[j] if above else zero
                    of_context[b, j] += room[1, j]
                for i in range(features):
                    x = numbers[b, at + i]
                    for j in range(units):
                        of_weight[i, j] += x * room[1, j]
            else:
                at_empty += slope
        for j in range(units):
            if room[0, j] > zero:
                of_score[j] += at_empty * room[0, j]
                of_context[b, j] += at_empty * score[j]


def _transposed(weight: torch.Tensor) -> Any:
    """As the compiled functions read it: [features, units]."""
    return weight.detach().t().contiguous().numpy()


def _arrays(*tensors: torch.Tensor) -> list[Any]:
    """As the compiled functions read them."""
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: torch.Tensor, slots: int, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.slots = slots
        ctx.save_for_backward(numbers, weight, bias)
        out, room = bias.new_empty(len(numbers), len(bias)), bias.new_empty(len(bias))
        given = numbers.numpy(), slots, _transposed(weight), *_arrays(bias, room)
        _add_mean(*given, out.numpy())  # type: ignore[call-arg]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        numbers, weight, bias = ctx.saved_tensors
        of_weight, of_bias, room = bias.new_zeros(weight.shape[::-1]), torch.zeros_like(bias), torch.empty_like(bias)
        given = numbers.numpy(), ctx.slots, _transposed(weight), *_arrays(bias, room, grad)
        _mean_back(*given, of_weight.numpy(), of_bias.numpy())  # type: ignore[call-arg]
        return None, None, of_weight.t(), of_bias


class _Preferences(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        numbers: torch.Tensor,
        slots: int,
        weight: torch.Tensor,
        bias: torch.Tensor,
        context: torch.Tensor,
        score: torch.Tensor,
    ) -> torch.Tensor:
        ctx.save_for_backward(numbers, weight, bias, context, score)
        out, room = bias.new_empty(len(numbers), slots), bias.new_empty(2, len(bias))
        given = numbers.numpy(), _transposed(weight), *_arrays(bias, context, score, room)
        _prefer(*given, out.numpy())  # type: ignore[call-arg]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        numbers, weight, bias, context, score = ctx.saved_tensors
        of_weight, of_context, of_score = (
            bias.new_zeros(weight.shape[::-1]),
            bias.new_zeros(context.shape),
            bias.new_zeros(score.shape),
        )
        given = _arrays(bias, context, score, bias.new_empty(2, len(bias)), grad)
        out = of_weight.numpy(), of_context.numpy(), of_score.numpy()
        _prefer_back(numbers.numpy(), _transposed(weight), *given, out)  # type: ignore[call-arg]
        return None, None, of_weight.t(), of_context.sum(dim=0), of_context, of_score


def _given(numbers: torch.Tensor, slots: int, weight: torch.Tensor) -> torch.Tensor:
    """As the compiled functions read them; EscalaError where a row has fewer numbers than the slots."""
    if numbers.shape[1] < slots * weight.shape[1]:
        raise EscalaError(f"observations of {numbers.shape[1]} numbers: {slots} slots have {slots} x {weight.shape[1]}")
    return numbers.detach().contiguous()


def mean_embedding(numbers: torch.Tensor, slots: int, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """[batch, numbers] -> [batch, units]: the mean over all slots of relu(weight s + bias). No gradient along
    `numbers`."""
    out: torch.Tensor = _Mean.apply(_given(numbers, slots, weight), slots, weight, bias)
    return out


def preferences(
    numbers: torch.Tensor,
    slots: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    context: torch.Tensor,
    score: torch.Tensor,
) -> torch.Tensor:
    """[batch, numbers] -> [batch, slots]: score . relu(weight s + bias + context), of context [batch, units] and score
    [units]. No gradient along `numbers`."""
    given = _given(numbers, slots, weight), slots, weight, bias, context, score
    out: torch.Tensor = _Preferences.apply(*given)
    return out
