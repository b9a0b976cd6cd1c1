"""Scenarios as Gymnasium environments."""

from nh_control.gym.environments import FAILURE_REWARD as FAILURE_REWARD
from nh_control.gym.environments import TrackingEnv as TrackingEnv
from nh_control.gym.environments import TrackingVectorEnv as TrackingVectorEnv
from nh_control.gym.environments import make as make
from nh_control.gym.environments import make_vec as make_vec
from nh_control.gym.environments import register as register

register()
