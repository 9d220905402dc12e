// Special functions in double for the evaluator.
#ifndef LATHE_DIALECTS_HLO_EVALMATH_H
#define LATHE_DIALECTS_HLO_EVALMATH_H

namespace lathe::hlo::eval {

double lgammaOf(double x);
double digammaOf(double x);
/// Hurwitz zeta: the sum of (k + q)^-x.
double zetaOf(double x, double q);
/// The nth derivative of digamma; NaN unless n is an integer >= 0.
double polygammaOf(double n, double x);
double erfInvOf(double x);
/// Regularised lower and upper incomplete gamma functions, the derivative of the lower by a.
double igammaOf(double a, double x);
double igammacOf(double a, double x);
double igammaGradAOf(double a, double x);
double randomGammaGradOf(double a, double x);
double betaincOf(double a, double b, double x);
/// exp(-|x|) I0(x) and exp(-|x|) I1(x).
double besselI0eOf(double x);
double besselI1eOf(double x);

} // namespace lathe::hlo::eval

#endif
