"""Pictures one after the other: as an animated GIF, as an MP4, or in a window. Frames are arrays uint8 [height, width,
3] of one shape."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from escala.errors import EscalaError

Frame = NDArray[np.uint8]
Colour = tuple[int, int, int]
Writer = Callable[[Iterable[Frame], Path, int], None]
"""Called with frames, a path and frames per second."""

INK, PAPER = (27, 31, 36), (255, 255, 255)
# pixels; narrow pictures are enlarged by a whole number, of tall ones rows are left out
LEAST_WIDTH, MOST_HEIGHT = 400, 1200
LINE, TEXT, MARGIN = 20, 13, 8  # pixels


def captioned(picture: Frame, text: str, legend: Mapping[str, Colour] | None = None) -> Frame:
    """The picture in a readable size, a line of text above it and a legend (name -> colour) below.

    Width and height are even, as video needs them.
    """
    picture = picture[:: -(-picture.shape[0] // MOST_HEIGHT)]
    times = min(-(-LEAST_WIDTH // picture.shape[1]), max(1, MOST_HEIGHT // picture.shape[0]))
    large = np.repeat(np.repeat(picture, times, axis=0), times, axis=1)
    high, wide = large.shape[:2]
    below = LINE + MARGIN if legend else MARGIN
    size = (wide + 2 * MARGIN + wide % 2, LINE + MARGIN + high + below + (LINE + MARGIN + high + below) % 2)
    page = Image.new("RGB", size, PAPER)
    page.paste(Image.fromarray(large), (MARGIN, LINE + MARGIN))
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(TEXT)
    draw.text((MARGIN, MARGIN // 2), text, INK, font)
    left, top = MARGIN, LINE + MARGIN + high + MARGIN // 2
    for name, colour in (legend or {}).items():
        draw.rectangle((left, top + 3, left + 11, top + 14), colour, INK)
        draw.text((left + 16, top), name, INK, font)
        left += 16 + int(draw.textlength(name, font)) + 2 * MARGIN
    return np.asarray(page)


def recoloured(picture: Frame, colours: Mapping[Colour, Colour]) -> Frame:
    """The picture with some colours in place of others."""
    out = picture.copy()
    for old, new in colours.items():
        out[(picture == np.array(old, np.uint8)).all(axis=2)] = new
    return out


def writer(path: Path) -> Writer:
    """What writes the format that the file's name asks for.

    Raises:
        EscalaError: another ending than .gif and .mp4, or .mp4 without ffmpeg on the machine.
    """
    if path.suffix.lower() == ".gif":
        return write_gif
    if path.suffix.lower() != ".mp4":
        raise EscalaError(f"{path}: the name must say the format: .gif or .mp4")
    if ffmpeg() is None:
        raise EscalaError(
            f"{path}: MP4 needs ffmpeg, which is not installed: install it (or pip install imageio-ffmpeg), or write "
            "a .gif"
        )
    return write_mp4


def write_gif(frames: Iterable[Frame], path: Path, fps: int) -> None:
    """An animated GIF that starts again at its end. Its clock counts hundredths of a second."""
    images = (Image.fromarray(frame).convert("P", palette=Image.Palette.ADAPTIVE) for frame in frames)
    first = next(images)
    first.save(path, save_all=True, append_images=images, duration=10 * round(100 / fps), loop=0)


def ffmpeg() -> str | None:
    """The program ffmpeg: the one on the path, or the one that the package imageio-ffmpeg brings."""
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    try:
        return str(import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        return None


def write_mp4(frames: Iterable[Frame], path: Path, fps: int) -> None:
    """An MP4 (H.264) by ffmpeg."""
    rest = iter(frames)
    first = next(rest)
    command = [ffmpeg() or "ffmpeg", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += [
        "-s",
        f"{first.shape[1]}x{first.shape[0]}",
        "-r",
        str(fps),
        "-i",
        "-",
        "-an",
        "-pix_fmt",
        "yuv420p",
        str(path),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            for frame in chain([first], rest):
                process.stdin.write(np.ascontiguousarray(frame).tobytes())  # type: ignore[union-attr]
            _, told = process.communicate()
        except BrokenPipeError:
            _, told = process.communicate()
    if process.returncode != 0:
        why = told.decode(errors="replace").strip().splitlines()
        raise EscalaError(f"{path}: ffmpeg could not write it ({why[-1] if why else process.returncode}); write a .gif")


def show(frames: Iterable[Frame], title: str, fps: int) -> None:
    """Play the frames in a window as they come, and end with them or when the window is closed.

    Raises:
        EscalaError: there is no screen.
    """
    pygame = import_module("pygame")
    try:
        pygame.display.init()
        _play(pygame, iter(frames), title, fps)
    except pygame.error as error:
        raise EscalaError(f"no window can be opened here ({error}); write a file with --out episode.gif") from None
    finally:
        pygame.display.quit()


def _play(pygame: Any, frames: Iterator[Frame], title: str, fps: int) -> None:
    clock, screen = pygame.time.Clock(), None
    for frame in frames:
        if screen is None:
            screen = pygame.display.set_mode((frame.shape[1], frame.shape[0]))
            pygame.display.set_caption(title)
        screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            return
        clock.tick(fps)
