# Made by `python python/stubs` from the source beside it; do not edit.

from . import parametrizations as parametrizations, parametrize as parametrize, rnn as rnn
from .convert import parameters_to_vector as parameters_to_vector, vector_to_parameters as vector_to_parameters
from ...optim.clip import (
    clip_grad_norm_ as clip_grad_norm_, clip_grad_value_ as clip_grad_value_, clip_grads_with_norm_ as clip_grads_with_norm_,
    get_total_norm as get_total_norm,
)
