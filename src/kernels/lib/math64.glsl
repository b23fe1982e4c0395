// math64.glsl: exp and log in double, which GLSL lacks; about 1 ulp, total over NaN, infinities and denormals.
#ifndef MATH64_GLSL
#define MATH64_GLSL

#define B_INFINITY64 packDouble2x32(uvec2(0u, 0x7ff00000u))
#define B_NAN64 packDouble2x32(uvec2(0u, 0x7ff80000u))
#define B_LN2_HIGH64 0.693147180369123816490lf /* 33 bits: n * B_LN2_HIGH64 is exact */
#define B_LN2_LOW64 1.90821492927058770002e-10lf

double b_power_of_two64(int n) { return packDouble2x32(uvec2(0u, uint(n + 1023) << 20)); } // n in [-1022, 1023]

double b_exp64(double x) {
    if (!(x <= 709.9lf)) return x > 709.9lf ? B_INFINITY64 : x;
    if (x < -745.2lf) return 0.0lf;
    double n = roundEven(x * 1.44269504088896340736lf);
    precise double r = (x - n * B_LN2_HIGH64) - n * B_LN2_LOW64;
    double p = 1.0lf;
    [[unroll]] for (int k = 13; k > 0; k--) p = 1.0lf + p * r / double(k); // Taylor: |r| <= ln(2) / 2
    int whole = int(n), part = whole / 2;
    return p * b_power_of_two64(part) * b_power_of_two64(whole - part);
}

double b_log64(double x) {
    if (!(x > 0.0lf)) return x == 0.0lf ? -B_INFINITY64 : B_NAN64;
    uvec2 w = unpackDouble2x32(x);
    int e = 0;
    if (w.y >= 0x7ff00000u) return x;
    if (w.y < 0x00100000u) { // denormal
        w = unpackDouble2x32(x * 18014398509481984.0lf);
        e = -54;
    }
    e += int(w.y >> 20) - 1023;
    double m = packDouble2x32(uvec2(w.x, (w.y & 0x000fffffu) | 0x3ff00000u));
    if (m > 1.41421356237309504880lf) {
        m *= 0.5lf;
        e++;
    }
    double f = m - 1.0lf, s = f / (2.0lf + f), z = s * s, p = 0.0lf;
    [[unroll]] for (int k = 11; k > 0; k--) p = z * (1.0lf / double(2 * k + 1) + p); // atanh: |s| < 0.172
    return double(e) * B_LN2_HIGH64 + (2.0lf * (s + s * p) + double(e) * B_LN2_LOW64);
}
#endif
