; lemmas: what products and quotients in lib/ are, over integers of any size. z3 cannot prove these of 64-bit words; that
; words are wide enough is said with each (the bounds), and that the C computes these formulas is what tests/unit/funnel,
; boundary and warmup ask, against 128-bit and rational arithmetic. A product of two unknowns stands under a name of its
; own where its factors do not matter.
;
; Each lemma says what must not be found: "unsat" is right. Each is followed by itself with one thing wrong: "sat".
;
; SPDX-License-Identifier: BSD-2-Clause
(set-option :timeout 20000)

(define-fun pow2-59 () Int 576460752303423488)
(define-fun pow2-64 () Int 18446744073709551616)
(define-fun pow2-118 () Int 332306998946228968225951765070086144)

; set_scale() in lib/algorithm/funnel/funnel.c: num = whole den + r, r 2^59 = high den + s, s 2^59 = low den + t.
; Products: whole den = wd, high den = hd, low den = ld; so scale den = 2^118 wd + 2^59 hd + ld + (t > 0) den.
(push)
(declare-const num Int) (declare-const den Int) (declare-const r Int) (declare-const s Int) (declare-const t Int)
(declare-const wd Int) (declare-const hd Int) (declare-const ld Int)
(assert (and (> den 0) (= num (+ wd r)) (<= 0 r) (< r den)))
(assert (and (= (* pow2-59 r) (+ hd s)) (<= 0 s) (< s den) (= (* pow2-59 s) (+ ld t)) (<= 0 t) (< t den)))
(define-fun excess ((up Int)) Int (- (+ (* pow2-118 wd) (* pow2-59 hd) ld up) (* pow2-118 num)))
(echo "the scale is 2^118 num / den, rounded up: 0 <= scale den - 2^118 num < den")
(push)
(assert (let ((e (excess (ite (> t 0) den 0)))) (not (and (<= 0 e) (< e den)))))
(check-sat)
(pop)
(echo "... rounded down")
(assert (let ((e (excess 0))) (not (and (<= 0 e) (< e den)))))
(check-sat)
(pop)

; funnel_time() in lib/algorithm/funnel/funnel.h: now scale / 2^118 and now num / den have one floor. With now num = q den + rest
; and e = scale den - 2^118 num: now scale den = 2^118 (q den + rest) + now e, and now e < 2^64 2^54, for den < 2^54.
(push)
(declare-const den Int) (declare-const qd Int) (declare-const rest Int) (declare-const now_e Int)
(assert (and (> den 0) (<= 0 rest) (< rest den) (<= 0 now_e)))
(define-fun now_scale_den () Int (+ (* pow2-118 (+ qd rest)) now_e))
(define-fun q-is-the-floor () Bool
	(and (<= (* pow2-118 qd) now_scale_den) (< now_scale_den (* pow2-118 (+ qd den)))))
(echo "nanoseconds become ticks exactly: never a tick short, never one too many")
(push)
(assert (and (< now_e pow2-118) (not q-is-the-floor)))
(check-sat)
(pop)
(echo "... for den up to 2^55")
(assert (and (< now_e (* 2 pow2-118)) (not q-is-the-floor)))
(check-sat)
(pop)

; funnel_ticks_to_ns() in lib/algorithm/funnel/funnel.h: rho = now num mod den; d on, the tick is (rho + d num) / den later.
; d num = dn. d = ceil((ticks den - rho) / num) is the least for which that is `ticks` or more.
(push)
(declare-const num Int) (declare-const den Int) (declare-const rho Int) (declare-const ticks_den Int) (declare-const dn Int)
(assert (and (> num 0) (> den 0) (<= 0 rho) (< rho den) (>= ticks_den den)))
(echo "a retry fits after exactly so long: denied a nanosecond before")
(push)
(assert (and (>= dn (- ticks_den rho)) (< dn (+ (- ticks_den rho) num))))
(assert (not (and (>= (+ rho dn) ticks_den) (< (+ rho (- dn num)) ticks_den))))
(check-sat)
(pop)
(echo "... rounded down")
(assert (and (<= dn (- ticks_den rho)) (> dn (- (- ticks_den rho) num))))
(assert (not (>= (+ rho dn) ticks_den)))
(check-sat)
(pop)

; ... whose quotient is guessed, at most 2 too low: x = (ticks - 1) den - guess num is in [0, 2 num), and the rest is
; x + den - rho. Where it is 3 num or less it is counted out: (rest != 0) + (rest > num) + (rest > 2 num).
(push)
(declare-const num Int) (declare-const rest Int)
(assert (and (> num 0) (> rest 0) (<= rest (* 3 num))))
(define-fun counted ((most Int)) Int (+ (ite (> rest 0) 1 0) (ite (> rest num) 1 0) (ite (> rest (* most num)) 1 0)))
(define-fun is-ceiling ((d Int)) Bool (or (and (= d 1) (<= rest num)) (and (= d 2) (> rest num) (<= rest (* 2 num)))
	(and (= d 3) (> rest (* 2 num)) (<= rest (* 3 num)))))
(echo "a small rest is counted out: the quotient rounded up")
(push)
(assert (not (is-ceiling (counted 2))))
(check-sat)
(pop)
(echo "... with >= in place of the last >")
(assert (not (is-ceiling (+ (ite (> rest 0) 1 0) (ite (> rest num) 1 0) (ite (>= rest (* 2 num)) 1 0)))))
(check-sat)
(pop)

; table_window() in lib/table/table.h: hash lines / 2^64, hash < 2^64. hash lines = product; hash <= 2^64 - 1 gives
; product <= 2^64 lines - lines.
(push)
(declare-const lines Int) (declare-const product Int) (declare-const home Int)
(assert (and (>= lines 1) (<= 0 product) (<= (* pow2-64 home) product) (< product (* pow2-64 (+ home 1)))))
(echo "a home is a line of the table")
(push)
(assert (and (<= product (- (* pow2-64 lines) lines)) (not (and (<= 0 home) (< home lines)))))
(check-sat)
(pop)
(echo "... of a hash of 65 bits")
(assert (and (<= product (* 2 (- (* pow2-64 lines) lines))) (not (and (<= 0 home) (< home lines)))))
(check-sat)
(pop)

; table_line() in lib/table/table.h: home + i / 2, less the lines there are where that is beyond them; i < 8, lines >= 4.
(push)
(declare-const lines Int) (declare-const home Int) (declare-const step Int)
(assert (and (<= 0 home) (< home lines) (<= 0 step) (<= step 3)))
(define-fun line () Int (ite (>= (+ home step) lines) (- (+ home step) lines) (+ home step)))
(echo "every line of a window is a line of the table")
(push)
(assert (and (>= lines 4) (not (and (<= 0 line) (< line lines)))))
(check-sat)
(pop)
(echo "... of a table of one line, too")
(assert (not (and (<= 0 line) (< line lines))))
(check-sat)
(pop)

; warmup_take() in lib/algorithm/warmup/warmup.c: with S = taken (2 above - taken) = a span + b, and k = cold - 1000:
; a k + floor(b k / span) is floor(S k / span). a k span = aks; b k = bk = g span + h, g span = gs.
(push)
(declare-const span Int) (declare-const aks Int) (declare-const bk Int) (declare-const gs Int)
(assert (and (> span 0) (<= 0 aks) (<= 0 bk) (<= 0 gs) (<= gs bk) (< bk (+ gs span))))
(echo "the trapezoid in two steps is the trapezoid: no rounding between them")
(push)
(assert (not (and (<= (+ aks gs) (+ aks bk)) (< (+ aks bk) (+ aks gs span)))))
(check-sat)
(pop)
(echo "... with both rests dropped")
(assert (not (and (<= aks (+ aks bk)) (< (+ aks bk) (+ aks span)))))
(check-sat)
(pop)

; warmup.c's threshold(): M (1000 + c) / (5000 + c), c the cold factor in thousandths, 1,000 to 1,000,000.
; M c = mc, and floor = f with f (5000 + c) = 5000 f + fc <= 1000 M + mc.
(push)
(declare-const m Int) (declare-const c Int) (declare-const f Int)
(assert (and (>= m 1) (< m 281474976710656) (>= c 1000) (<= c 1000000) (>= f 0)))
(echo "the threshold is below the capacity: the slope has a span")
(push)
(assert (and (<= (* f (+ 5000 c)) (* m (+ 1000 c))) (>= f m)))
(check-sat)
(pop)
(echo "... for a factor that is added to 1,000 on both sides")
(assert (and (<= (* f (+ 1000 c)) (* m (+ 1000 c))) (>= f m)))
(check-sat)
(pop)
