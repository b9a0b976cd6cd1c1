"""Films of animations in files: animated WebP, GIF and PNG, and MP4 with ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import numpy as np
from PIL import Image

from nh_control.numerics.files import whole_file, whole_path
from nh_control.view.animation import Animation
from nh_control.view.film_formats import WRITERS, Film
from nh_control.view.painter import Painter

RATE_HZ, SIZE = 30.0, (960, 540)
"""Number of pictures per second in a film, and its width and height in pixels."""
MP4 = ".mp4"


def write(
    animation: Animation,
    file: Path,
    *,
    rate_hz: float = RATE_HZ,
    size: tuple[int, int] = SIZE,
    speed: float = 1.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write a film of the whole animation. The film shows `rate_hz` pictures per second, each with
    `size` pixels, and plays at `speed` times the speed of the motion. `progress(done, total)` is
    called after each picture. Only one picture at a time is kept in memory.

    The suffix of the file is mp4, webp, gif or png. The file is given its name only when it is
    complete. Returns the file. Raises ValueError for a different suffix, for a size that is odd or
    too small, and for a rate or speed that is not positive; RuntimeError if ffmpeg is missing or
    fails; and OSError if the file cannot be written.
    """
    file = Path(file)
    if file.suffix not in (MP4, *WRITERS):
        raise ValueError(f"{file}: expected {MP4}, {', '.join(WRITERS)}, got {file.suffix!r}")
    if min(size) < 16 or size[0] % 2 or size[1] % 2:
        raise ValueError(f"a film's width and height must be even and >= 16, got {size}")
    for name, value in (("rate_hz", rate_hz), ("speed", speed)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"a film's {name} must be positive, got {value}")
    # A missing program is reported before the first picture is painted.
    program = ffmpeg() if file.suffix == MP4 else ""
    shown = rows(animation.times, rate_hz / speed)
    pictures = _pictures(animation, size, shown, progress)
    if program:
        with whole_path(file) as unfinished:
            _encode(program, pictures, unfinished, size, rate_hz)
    else:
        with whole_file(file) as out:
            WRITERS[file.suffix](out, pictures, Film(size, rate_hz, len(shown)))
    return file


def rows(times: np.ndarray, rate_hz: float) -> np.ndarray:
    """The indices of the times (N) that are nearest to the times of a film's pictures."""
    moments = times[0] + np.arange(0, times[-1] - times[0] + 0.5 / rate_hz, 1 / rate_hz)
    # Choose the nearer of the two neighbors of each moment.
    after = np.searchsorted(times, moments).clip(1, max(1, len(times) - 1))
    nearer = moments - times[after - 1] < times[after % len(times)] - moments
    return np.where(nearer | (len(times) == 1), after - 1, after)


def ffmpeg() -> str:
    """The ffmpeg program installed on the system or in the imageio-ffmpeg package. Raises
    RuntimeError if there is none.
    """
    program = shutil.which("ffmpeg")
    if program is not None:
        return program
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError) as missing:
        raise RuntimeError(
            f"films in mp4 need ffmpeg ({missing}): install it, or "
            "`pip install nh_control[film]`, or choose .webp"
        ) from missing


def _pictures(
    animation: Animation,
    size: tuple[int, int],
    frames: np.ndarray,
    progress: Callable[[int, int], None],
) -> Iterator[Image.Image]:
    painter = Painter(animation, size)
    for done, k in enumerate(frames, 1):
        yield painter.picture(int(k))
        progress(done, len(frames))


def _encode(
    program: str,
    pictures: Iterator[Image.Image],
    file: Path,
    size: tuple[int, int],
    rate_hz: float,
) -> None:
    """Write H.264 video that every player can play. Raises RuntimeError with ffmpeg's message."""
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}"]
    target = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart"]
    command = [program, "-v", "error", "-y", *source, "-r", f"{rate_hz:g}", "-i", "-", *target]
    with subprocess.Popen(
        [*command, "-f", "mp4", str(file)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C only stops this process, which then removes the file
    ) as process:
        pipe = cast(IO[bytes], process.stdin)
        try:
            with suppress(BrokenPipeError):  # the reason is on stderr
                for picture in pictures:
                    pipe.write(picture.tobytes())
            _, messages = process.communicate()
        finally:
            process.kill()
    if process.returncode or messages:
        words = messages.decode(errors="replace").split("\n")
        raise RuntimeError(f"ffmpeg failed: {words[0].strip()}")
