"""Contacts between a shape on a body and the ground or another body."""

from __future__ import annotations

from dataclasses import dataclass

from nh_control.mechanics.contacts import BOUNCE_SPEED, require_number
from nh_control.multibody.contact_grounds import Ground, Plane
from nh_control.multibody.contact_pairs import BodySurface, round_shape
from nh_control.multibody.contact_shapes import Corner, Shape, Touch
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.numerics.identifiers import identifier


@dataclass(frozen=True)
class Contact:
    """A shape on a body that may touch the `ground`, or the `BodySurface` of another body, with
    Coulomb `friction` and Newton `restitution`.

    The center of the shape is `at`, a point or a frame's origin. Without friction, bodies slide
    freely. Meshes, edge-edge contact, rolling friction and torsional friction are not supported.
    Two bodies can only touch as spheres or capsules. The `name` defaults to the frame's name.
    Raises ValueError for numbers out of range and for shapes that do not match the ground.
    """

    at: Point | str
    shape: Shape = Corner()
    friction: float = 0.0
    restitution: float = 0.0
    ground: Ground | BodySurface = Plane()
    name: str = ""
    bounce_speed: float = BOUNCE_SPEED

    def __post_init__(self) -> None:
        if isinstance(self.at, str):
            object.__setattr__(self, "at", Point(self.at))
        if not self.name:
            # a frozen dataclass does not allow plain assignment
            object.__setattr__(self, "name", self.point.frame)
        require_number(self.name, "friction", self.friction, 0.0)
        require_number(self.name, "restitution", self.restitution, 0.0, 1.0)
        if not isinstance(self.shape, Shape):
            raise ValueError(
                f"contact {self.name!r}: shape must be a Corner, Sphere, Ellipsoid, Disc, "
                f"Capsule, Cylinder or BoxCorners, got {self.shape!r}; meshes are not supported, "
                "use shapes instead"
            )
        if isinstance(self.ground, BodySurface):
            round_shape(f"contact {self.name!r}", self.shape)
        elif self.ground.moves and not self.ground.sliding:
            raise ValueError(
                f"contact {self.name!r}: the ground of a contact may slide, but not turn "
                f"(turn_rate = {getattr(self.ground, 'turn_rate', None)}); roll on it with a "
                "RollingWheel"
            )

    @property
    def constant(self) -> str:
        """The prefix of the contact's parameter names, as in `<constant>_friction`."""
        return identifier(self.name)

    @property
    def point(self) -> Point:
        """The center of the shape."""
        return self.at if isinstance(self.at, Point) else Point(self.at)

    @property
    def frames(self) -> set[str]:
        """The frames that carry the touching parts."""
        ground = {self.ground.point.frame} if isinstance(self.ground, BodySurface) else set[str]()
        return {self.point.frame} | ground

    def touches(self, k: Kinematics) -> list[Touch]:
        """All places where the shape may touch in the kinematics k."""
        if isinstance(self.ground, BodySurface):
            return list(self.ground.touches(k, self.point, self.shape))
        return list(self.shape.touches(k, self.point, self.ground))

    @property
    def sliding(self) -> tuple[float, ...]:
        """Velocity (2, m/s) of the ground along its tangents, or empty if it is at rest."""
        return () if isinstance(self.ground, BodySurface) else self.ground.sliding

    @property
    def is_between_bodies(self) -> bool:
        """Whether the ground is another body."""
        return isinstance(self.ground, BodySurface)
