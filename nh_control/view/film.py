"""Films of animations as files: WebP, GIF and PNG by Pillow, MP4 by ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from PIL import Image

from nh_control.view.animation import Animation
from nh_control.view.painter import Painter

RATE_HZ, SIZE = 30.0, (960, 540)
"""Pictures per second, and width and height in pixels, of a film."""
KINDS: dict[str, dict[str, Any]] = {
    ".webp": {"quality": 80, "method": 3},
    ".png": {},
    ".gif": {"optimize": True},
}
"""Options of Pillow for films, by their suffix."""
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
    """Write a film of the whole animation at `rate_hz` pictures per second of `size` pixels,
    played at `speed` times the speed of the motion; `progress(done, total)` is called after every
    picture.

    The suffix of the file is mp4, webp, gif or png. Returns the file. Raises ValueError for
    another suffix, an odd or too small size, or a rate or speed that is not positive, and
    RuntimeError if ffmpeg is missing or fails.
    """
    file = Path(file)
    if file.suffix not in (MP4, *KINDS):
        raise ValueError(f"{file}: a film is {MP4}, {', '.join(KINDS)}, got {file.suffix!r}")
    if min(size) < 16 or size[0] % 2 or size[1] % 2:
        raise ValueError(f"a film's width and height are even and at least 16, got {size}")
    for name, value in (("rate_hz", rate_hz), ("speed", speed)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"a film's {name} must be positive, got {value}")
    program = ffmpeg() if file.suffix == MP4 else ""
    pictures = _pictures(animation, size, rows(animation.times, rate_hz / speed), progress)
    if program:
        _encode(program, pictures, file, size, rate_hz)
        return file
    first, *others = pictures
    duration, options = 1000 / rate_hz, KINDS[file.suffix]
    first.save(file, save_all=True, append_images=others, duration=duration, loop=0, **options)
    return file


def rows(times: np.ndarray, rate_hz: float) -> np.ndarray:
    """Indices of the times (N) nearest to a film's pictures, from the first time to the last."""
    wanted = times[0] + np.arange(0, times[-1] - times[0] + 0.5 / rate_hz, 1 / rate_hz)
    after = np.searchsorted(times, wanted).clip(1, max(1, len(times) - 1))
    nearer = wanted - times[after - 1] < times[after % len(times)] - wanted
    return np.where(nearer | (len(times) == 1), after - 1, after)


def ffmpeg() -> str:
    """The program ffmpeg, of the system or of the package imageio-ffmpeg; raises RuntimeError
    where there is none.
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
    """Write H.264 that every player takes; raises RuntimeError with what ffmpeg says."""
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}"]
    target = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart"]
    command = [program, "-v", "error", "-y", *source, "-r", f"{rate_hz:g}", "-i", "-", *target]
    with subprocess.Popen(
        [*command, str(file)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        pipe = cast(IO[bytes], process.stdin)
        with suppress(BrokenPipeError):  # it says why on stderr
            for picture in pictures:
                pipe.write(picture.tobytes())
        _, said = process.communicate()
    if process.returncode or said:
        raise RuntimeError(f"{file}: ffmpeg failed: {said.decode(errors='replace').strip()}")
