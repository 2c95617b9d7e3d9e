// Elements from one layout to another.
//   OF_BYTES: of an element
#include "prelude.cuh"
typedef of_word<OF_BYTES>::type TO;
typedef TO T0;
#define OF_N 1
#define OF_S 0
#define OF_EACH(X) X(0)
#define OF_COMPUTE(y, X) y = X(0)
#include "pointwise.cuh"
