# Made by `python python/stubs` from the source beside it; do not edit.

from .convert import parameters_to_vector as parameters_to_vector
from .convert import vector_to_parameters as vector_to_parameters
from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import rnn as rnn
from ...optim.clip import clip_grad_norm_ as clip_grad_norm_
from ...optim.clip import clip_grad_value_ as clip_grad_value_
from ...optim.clip import clip_grads_with_norm_ as clip_grads_with_norm_
from ...optim.clip import get_total_norm as get_total_norm
