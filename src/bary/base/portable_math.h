// SPDX-License-Identifier: Apache-2.0
// exp, log, sin, cos and pow in double from addition, multiplication and division only (sqrt is exact by IEEE 754), so
// that schedules, rotary angles and random normals are the same bits under every C library and every processor.
// Errors against the true value, measured in portable_math_test.cc: exp, log, sin, cos below 4.5e-16 relative (sin,
// cos, and log near 1: absolute); pow below 1e-15 times (1 + |y log x|). Method: reduction to a small interval, then a
// Taylor or atanh series long enough for double.
#pragma once

namespace bary::portable {

double exp(double x);            // e^x; 0 below -745, +inf above 709.78; NaN stays NaN
double log(double x);            // natural logarithm; -inf at 0, NaN below
double sin_turns(double turns);  // sin(2 pi t): the angle in whole turns needs no reduction by pi
double cos_turns(double turns);
double sin(double radians);  // |x| up to about 1e9
double cos(double radians);
double pow(double base, double exponent);  // base > 0: exp(exponent log base)

}  // namespace bary::portable
