"""Names from the wild for what a formula reads, gives and takes as numbers, by the slot that they stand in."""

from __future__ import annotations

from random import Random

from warpwright_upskill.data.requests.vocabulary import ROLES

_MORE = """
x: l e f u v s t d g h p r xs arr vec0 in_ in0 input0 x0 x1 x_in x_t xt h_t h_prev z_in field rho phi theta psi
    omega temp_c pressure density voltage current price returns heights depth luma luminance volume grid lattice q_vals
    rewards value_est advantages logp log_probs counts_in energy flux residuals stream wave spectrum coeffs_in raw
    y_pred preds feature_map fmap kv_in ctx context emb token_h Xin X_in A_in dX Xs L M_in V0 P_in img_f sensor readings
    adc trace audio pcm mel frames
    block_in layer_in u_n un T_old old curr E_field Bz rho_in sdf weights_in buffer tmp_in
logits: log_its out_logits head_out s l e Z L_in scores_in energies unnorm class_scores
y: yy y_out out_ out0 y_t yt h_next h_out z_out r s d res_out dest target_buf Yout Y_out yhat y_hat x_hat outp o_t
    o_data answer outbuf final normed activated u_new u_next T_new new_vals next_state filtered smoothed acc_out sum_out
    feat_out emb_out img_out grid_out energy_out cost_out R_out Z yo xo output0 result_ d_result dOut h_result O_ V_out
z: z_ second_out extra_out sigma_out rstd inv_std lse aux secondary out_b side stats_out
w: w_ W_ wgt scale_vec ln_gamma g_ gains per_ch ch_scale coef_vec lam weights_1d wv W0 rms_w
b: b_ bvec shift offsets_c add_vec ln_beta beta_ b0_vec bias0 d_bias B_
res: res0 r_in x_skip skip_in residual_in x_prev orig base shortcut_in y0_in
gate: gate_ gt g0 gate_in sig_gate gatev forget update_gate i_gate
up: up_ upv u_in x_up
A: A_ Ad lhs_mat K_mat H_mat P_mat left_mat amat Aq X1 U L0 F_mat dA gA
Bm: B_ Bd rhs_mat W1 R_mat right_mat bmat Bq X2 V_mat Wt dB gB W_ weight_t
Cm: C_ Cd prod outC cmat Y_ Z0 dC res_mat
other: z_in b_in x2 y2_in in2 in1 bb other_ yv v_in xb q_in ref gt expected truth prev_x x_old d2 e2 l2_in s2 rhs_v u2
    V_ x_ref teacher base_line w_in dual
third: t3 c_ z3 in3 extra_in third_ m3 cc d3
q: q_ qs Qm q_t xq Q_
k: k_ ks Km k_t xk K_cache k_cache
v: v_ vs Vm v_t xv V_cache v_cache
mask: mask_ msk alive active visible flags_in keep_mask is_set selected sel pad_mask inside
ids: ids_ id_list perm order pick where_to sel_idx idx_ nbr src_idx row_ids slots I_ map_to lookup j_idx
labels: lab y_ gold answer_ids class_id t_ tgt gt_cls
table: tbl tab W_e E_ dict_vals palette weights_emb embed_w lut_ values_tab centroids
pos: pos_table pe P_ pos_enc abs_pos
eps: e epsln small ln_eps eps0 e_ delta_eps
alpha: a_ lam lambda_ c k_scale mult gain w0 coeff amp sc kappa inv_t rate_ k_ fac c0 norm_factor kT inv_n
beta: b_ c_ bet offset0 shift_ add0 intercept mu_ bias_s
tau: T_ tmp_inv kT tau_ Temp temperature_ beta_inv
lr: lr_ alpha_lr gamma_t step_len lrate
wd: wd_ lambda_wd l2 reg reg_lambda
mom: mom_ momentum_ beta_m gamma_m
b1: b1_ beta_1 decay1
b2: b2_ beta_2 decay2
p: p_ w_param weight_ W_p params theta_ x_param
grad: grad_ g_t dL_dw gw dLdw grads dp
m1: m1 m_ mt first_moment mom1
m2: v_ vt nu mom2 v_hat_in
lo: lo_ vmin minv a_min lower_bound floor_v x_min
hi: hi_ vmax maxv a_max upper_bound cap ceil_v x_max
thr: thr_ th level limit theta_c tol min_score cut
seed: seed_ seed0 rand_seed base_seed
pd: p_ pdrop dropout rate_drop drop
scale: sc s_ qscale scale_ inv_s dq_scale step_q
zp: zp_ z0 zero_p offset_q
q8: q8_ qx xq_ int_vals qdata codes_
hist: hist_ H_ cnt freq_out bin_count
bins: bins_ bin_idx bin_id x_bins which
acc: acc_ total_out agg agg_out buckets_sum
ptr: ptr_ rp offs row_start begin_idx A_ptr csr_ptr
cols: cols_ ci colidx A_col col_ind csr_col
nz: nz_ nzv A_val csr_val a_vals coo_val
vec: xvec d_x dense_x x_ p_vec
img: img_ im picture gray I_in src_img rgb bmp canvas depth_map photo
ker: ker_ filt taps h_k g_k stencil K_ mask_k weights_k
pts: pts_ xyz positions vertices cloud atoms coords P_xyz
len: len_ n_valid lens_ L_ cu_len actual_len num_tok
f: f_ inv_f omega w_freq base_freq
cos: cos_ c_t cosv cos_tab
sin: sin_ s_t sinv sin_tab
dy: dy_ dY dLdy g_out gy grad_y upstream d_y
dx: dx_ dX dLdx gx grad_x d_x_out
loss: loss_ L_ l_out obj per_row_loss err
n0: n0_ win window span k_max limit_n
dt: dt_ tstep h_step time_step
mean_: mean_ avg_ mean_c m_c
var_: var_ s2 var_c
std_: std_ sd s_c
pos_: p_in pos_emb_ match same_cls
neg: neg_ mismatch diff_cls n_in
u: field phi_n T_grid temp psi_n potential conc U height_n
v: second_field conc_b V_field
vel: v_body velocity speeds vels Vp
vx: u_vel wind_x v_x U_x
vy: v_vel wind_y v_y U_y
vz: w_vel wind_z v_z
hx: dx_cell spacing cell h_grid delta
ps: points_xyz coords pts_nd R_all sites
sig: signal wave_in samples_in trace_in pcm_in s_in
taps: fir_h coeffs_b h_fir weights_t impulse
prev: last_frame old_field prev_step u_old previous
rhs: source f_src rhs_f charge_density
spot: S0 s_now spot_px underlying
strike: K_strike strikes k_opt
rate: r_f rate_r int_rate rr_
cfl: courant c_num lambda_c
kappa: diffusivity k_cond conductivity0
vol: volume_t traded shares
flux: face_flux F_face flx
spin: sigma_s lattice_s spins
mat: rot M3 T_mat xform R3
nv: normals n_vec nrm
tri: faces tris f_idx
ba: boxes_a det_boxes preds_box
bb: boxes_b gt_boxes anchors
va: vec_a a_vec dirs
vb: vec_b b_vec forces
qa: quat_a q_left
qb: quat_b q_right
img: frame_in plane scan
depth: depth_m zbuf range_img
paths: sim_paths S_paths
soft: eps_soft softening
rc: r_cut cutoff_r
noisy: estimate degraded
box: box_len L_box cell_len
mass: mass_ masses mm weights_b charge
"""


def _table(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    slot = ""
    for line in text.strip().splitlines():
        head, colon, names = line.rpartition(":")
        slot = head if colon else slot
        found.setdefault(slot, []).extend(names.split())
    return {slot: tuple(names) for slot, names in found.items()}


_WILD = _table(_MORE)
_NUMBERS = "eps eps_ alpha beta tau lr wd mom b1 b2 lo hi thr seed pd zp n0 dt c1 c2 top left"
NUMBERS = frozenset(_NUMBERS.split())
"""Slots that a number stands in, never an array."""
_TOKENS = """
acc act adv agg attn base batch beam blend bond carry cell chan coef conf corr cost count curr decay delta dense
dist drift edge elem emb ener err event face feat field flow frame freq gain gate grid group head hid hist image
inp joint kern key lane lat layer level light line link load loc logit mask mat mesh mode node norm obs ode part
patch path peak phase pix plane point pool pos pred price prob proj proto quant query rank rate ray ref reg resp
reward row samp score seg sens sig site slot snap spin state stat stream sum syn tag temp tile tok trace traj val
vel vert volt vox wave win word
"""
_WORDS = _TOKENS.split()
_BEHIND = ("_in", "_buf", "_data", "_vals", "_t", "_0", "s", "_vec", "_arr", "_map", "0", "1", "2", "_prev", "_x")
_RESULT = ("_out", "_new", "_res", "_next", "_o", "Out", "_dst", "_y", "_result")
_RESULTS = frozenset(("y", "z", "Cm", "dx", "loss", "q8"))
_MADE = frozenset(("x", "other", "third", "img", "vec", "res", "w", "b", "table", "A", "Bm", "ids", "grad", "dy"))


def pool(slot: str) -> tuple[str, ...]:
    """What may stand in a slot, the usual name first."""
    return (*ROLES.get(slot, (slot,)), *_WILD.get(slot, ()))


def wild(slot: str, chance: Random) -> str:
    """A name that people may give to what stands in a slot: one that is known, with a mark of some style, or one that
    is made of words."""
    name = chance.choice(pool(slot))
    style = chance.random()
    if slot in _MADE | _RESULTS and style < 0.2:
        word = chance.choice(_WORDS)
        behind = chance.choice(_RESULT if slot in _RESULTS else _BEHIND)
        other = chance.choice(_WORDS)
        return chance.choice((word + behind, f"{word}_{other}", f"{word}{other.title()}", f"d_{word}{behind}"))
    if slot in NUMBERS:
        return f"{name.rstrip('_')}{chance.choice(('_', '0', '_val', '_f'))}" if style > 0.93 else name
    if style > 0.94:
        return chance.choice(
            (f"d_{name}", f"g_{name}", f"{name.rstrip('_')}_ptr", f"p_{name}", f"{name.rstrip('_')}_d", f"dev_{name}")
        )
    if style > 0.9:
        return f"{name.rstrip('_')}{chance.choice(('_', '0', '1', '_t', '_i', 'f'))}"
    return name
