// Special functions in double for the evaluator.
#ifndef LATHE_DIALECTS_HLO_EVALMATH_H
#define LATHE_DIALECTS_HLO_EVALMATH_H

namespace lathe::hlo::eval {

double lgammaOf(double x);
double digammaOf(double x);
double erfInvOf(double x);
double betaincOf(double a, double b, double x);
/// exp(-|x|) I0(x) and exp(-|x|) I1(x).
double besselI0eOf(double x);
double besselI1eOf(double x);


// In the arithmetic of T (float, double), as TensorFlow rounds; EvalGamma.cpp.

/// Hurwitz zeta: the sum of (k + q)^-x.
template <class T>
T zetaOf(T x, T q);
/// The nth derivative of digamma; NaN unless n is an integer >= 0.
template <class T>
T polygammaOf(T n, T x);
/// Regularised lower and upper incomplete gamma functions, the derivative of the lower by a.
template <class T>
T igammaOf(T a, T x);
template <class T>
T igammacOf(T a, T x);
template <class T>
T igammaGradAOf(T a, T x);
/// The derivative by alpha of a sample of the gamma distribution.
template <class T>
T randomGammaGradOf(T alpha, T sample);

} // namespace lathe::hlo::eval

#endif
