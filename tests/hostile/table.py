"""The public interface as honest calls, a line each: `around:callable name:kind=honest ...`.

`kind` says which hostile values an argument gets (`values.KINDS`); a trailing `?` lets it be None, and `name!` is
positional. `around` is a function of the scene to which the outcome is handed, so that what was accepted is also used.
A call goes on in lines that are indented. After `--` stand classes of hostility that a call may well accept for an
argument: `name/class`.
"""

PYTHON = """
embedded:dx.Binary shape:shape=4 frozen:codes?=mask frozen_codes:codes?=state -- frozen/bool frozen/fraction
embedded:dx.Spin shape:shape=4
embedded:dx.Ordinal shape:shape=4 values:array=[0.,1.,2.] -- values/too-many-axes values/wrong-size
embedded:dx.Categorical shape:shape=4 num_levels:size=3
drawn:dx.Target.from_log_prob log_prob:function=quadratic space:space=bits -- log_prob/wrong-number-of-arguments
drawn:dx.Tempered target:target=spins beta:positive0=0.5

drawn:dx.targets.Bernoulli probs:array=probabilities
drawn:dx.targets.Bernoulli logits:array=four
drawn:dx.targets.Independent logits:array=logits43
drawn:dx.targets.Ising.lattice shape:shape=(2,2) coupling:number=0.5 field:number=0.1 periodic:flag=False --
    coupling/several-numbers field/several-numbers
drawn:dx.targets.Ising.graph graph:thing=edges coupling:number=0.5 field:number=0.1 -- coupling/several-numbers
    field/several-numbers
drawn:dx.targets.Ising.graph graph:array=edges
drawn:dx.targets.Ising.graph graph!:array=edges coupling:array=[0.1,0.2,0.3] field:array=four
drawn:dx.targets.Ising.dense couplings:array=matrix field:array=four
drawn:dx.targets.Ising space:space=bits coupling:array=matrix linear:array=four
drawn:dx.targets.Potts.lattice shape:shape=(2,2) num_levels:size=3 coupling:number=0.5 field:number=0.1 --
    coupling/several-numbers field/several-numbers
drawn:dx.targets.Potts.graph graph:thing=edges num_levels:size=3 coupling:number=0.5 field:number=0.1 --
    coupling/several-numbers field/several-numbers
drawn:dx.targets.Quadratic space:space=bits coupling:array=matrix linear:array=four
drawn:dx.targets.Quadratic.from_qubo Q:array=matrix
dx.targets.Dense matrix:array=matrix shape:shape?=(2,2)
dx.targets.Sparse edges:array=edges weights:array=[.1,.2,.3] shape:shape=(4,)
dx.targets.Lattice shape:shape=(2,2) weights:number=0.5 periodic:flag=False -- weights/several-numbers
drawn:dx.targets.Polynomial.from_terms space:space=bits terms:thing={(0,1,2):1.,(0,):-1.} offset:number=0.0
drawn:dx.targets.FactorGraph num_levels:codes=[2,3] scopes:thing=[[0,1]] tables:thing=[[[1.,2.,3.],[3.,2.,1.]]]
    in_logs:flag=False
drawn:dx.targets.CubicIsing couplings:array=matrix triples:codes=[[0,1,2]] strength:number=0.3 coding:choice='spin'
drawn:dx.targets.CubicIsing.lattice side:size=3 coupling:number=0.2 strength:number=0.3 num_triples:size0=3
    seed:seed=0
drawn:dx.targets.RBM weights:array=weights34 visible_bias:array=four hidden_bias:array=[.1,.2,.3] shape:shape?=(2,2)
drawn:dx.targets.CategoricalRBM weights:array=weights342 visible_bias:array=logits43 hidden_bias:array=[.1,.2,.3]
dx.targets.RBM.load path:in_file='missing.npz'
drawn:dx.targets.FHMM series:array=series weights:array=[1.,2.] offset:number=0.1 noise_variance:positive=1.0 --
    offset/several-numbers noise_variance/several-numbers
drawn:dx.targets.FHMM.simulated seed:seed=0 length:size=4 num_factors:size=2 noise_variance:positive=1.0
    initial_prob:probability=0.1 stay_prob:probability=0.8
drawn:dx.targets.CategoricalFHMM.simulated seed:seed=0 length:size=4 num_factors:size=2 num_levels:size=3
    noise_variance:positive=1.0 initial_prob:probability=0.1 stay_prob:probability=0.8
drawn:dx.targets.LatticeGaussian.from_matrix Q:array=np.eye(4) num_levels:size=3 centre:number=0.0 --
    centre/several-numbers
drawn:dx.targets.LatticeGaussian.rotation seed:seed=0 dimension:size=4 condition:positive=10 num_levels:size=3
drawn:dx.targets.LatticeGaussian.sparse seed:seed=0 dimension:size=4 condition:positive=10 num_levels:size=3
drawn:dx.targets.QuarticMixture.simulated seed:seed=0 dimension:size=4 num_components:size=2 num_levels:size=3
drawn:dx.targets.PolynomialMixture.poly2 dimension:size=4 num_components:size=2 num_levels:size=3
drawn:dx.targets.PolynomialMixture.poly4 dimension:size=4 num_components:size=2 num_levels:size=3
drawn:dx.targets.BalancedLabels coupling:array=matrix num_labels:size=3 cut_cost:number=2.0 size_cost:number=1.0
drawn:dx.targets.LogisticRegression X:array=regressors y:array=outcomes
drawn:dx.targets.LogisticRegression.simulated seed:seed=0 num_rows:size=6 dimension:size=8 num_active:size0=2
drawn:dx.targets.SparseLinearRegression X:array=regressors y:array=outcomes num_extra:size0=0 g:positive=20.0
    lam:positive=.001 noise:array=(.1,.1) prior:array=(.001,10.) extra_prob:probability=.001 -- noise/integers
    prior/integers
drawn:dx.targets.SparseLinearRegression.simulated seed:seed=0 num_extra:size0=0 num_rows:size=6 num_covariates:size=2
    num_copies:size=2
dx.targets.TallLogisticRegression data:thing=(regressors,outcomes) batch_size:size=2 inclusion_prob:probability=0.5
dx.targets.TallLogisticRegression.simulated seed:seed=0 num_rows:size=20 num_distinct:size=4 batch_size:size=2 --
    batch_size/huge
by_batches:dx.targets.GaussianBernoulli W:array=np.eye(3) b:array?=[.1,.2,.3] batch_size:size=1
by_batches:dx.targets.Bayesian log_likelihood:function=log_likelihood data:thing=series space:space=bits
    batch_size:size=2 log_prior:function?=quadratic
by_batches:dx.targets.Expectation psi:function=psi draw:function=latent space:space=bits phi:function?=None --
    draw/returns-a-vector draw/returns-complex draw/returns-NaN
by_batches:dx.targets.Quenched log_conditional:function=log_psi draw:function=latent space:space=bits
    batch_size:size=1 -- draw/returns-a-vector draw/returns-complex draw/returns-NaN

dx.sample key:key=key target:target=spins sampler:sampler='rwm' num_chains:size=2 num_warmup:size0=0
    num_samples:size=2 thinning:count=1 init:codes?=state keep:choice='draws' keep_warmup:flag=False
    adaptation:choice?=None chunk_size:count?=2 devices:count?=None progress:flag=False -- chunk_size/huge
dx.sample key:key=key target:target=spins sampler:sampler='dmala' num_chains:size=2 num_warmup:count0=6
    num_samples:size=2 keep:function=keep_sum adaptation:thing?=dx.AcceptanceRate() progress:flag=False --
    keep/returns-a-vector keep/returns-NaN keep/returns-complex adaptation/wrong-type
dx.sample key:key=key target:target=spins sampler:sampler='gibbs' num_chains:size=2 num_warmup:count0=0
    num_samples:count=2 keep:choice='moments' init:codes?=states progress:flag=False
sample_into folder:out_folder?='run'
tempered:dx.Ladder num_rungs:size=3 reference:target?=None num_steps:count=1 clusters:flag=False -- num_steps/huge
tempered:dx.Ladder betas:array?=(0.1,1.0) -- betas/float16
dx.auto seconds:positive=1.0 score:choice='jump' candidates:thing?=('rwm','gibbs') -- seconds/infinite
tuning:dx.AcceptanceRate rate:probability?=0.5 rule:choice='robust'
tuning:dx.adaptation.JumpProbes names:thing?=None window:count?=2 num_windows:count0=0
    grid:thing=()
dx.adaptation.OneByOne rules:thing=[None,dx.AcceptanceRate()]
tuning:dx.bench.papers.rules.StepSearch names:thing?=None values:array?=(0.1,0.5) window:count?=2
    num_windows:count0=0 -- values/integers values/too-many-axes
tuning:dx.bench.papers.rules.GammaRule names:thing?=('gamma',) window:count?=2 num_windows:count0=0

drawing:dx.samplers.rwm path_length:positive=1.0 reach:count?=1
drawing:dx.samplers.mh_uniform radius:positive=1.0
drawing:dx.samplers.gibbs scan:choice='random'
drawing:dx.samplers.block_gibbs block_size:count=2
drawing:dx.samplers.hamming_ball block_size:count=2 radius:count=1
drawing:dx.samplers.lb balancing:choice='sqrt'
drawing:dx.samplers.lb balancing:function=square_root -- balancing/returns-a-vector balancing/returns-NaN
drawing:dx.samplers.pas_exact path_length:positive=1.0 balancing:choice='sqrt'
drawing:dx.samplers.gwg path_length:positive=1.0 balancing:choice='sqrt' ratios:choice='exact'
drawing:dx.samplers.gwg_ordinal radius:positive=1.0 balancing:choice='sqrt' ratios:choice='exact'
drawing:dx.samplers.pas path_length:positive=1.0 balancing:choice='sqrt' ratios:choice='exact'
drawing:dx.samplers.dmala step_size:positive=0.2 balancing:choice='sqrt' ratios:choice='exact'
drawing:dx.samplers.dula step_size:positive=0.2 balancing:choice='sqrt' ratios:choice='exact'
drawing:dx.samplers.dlp_trace step_size:positive=0.2 balancing:choice='sqrt' diagonal:array?=np.ones(4)
    ratios:choice='exact'
drawing:dx.samplers.dlmc step_size:positive=3.0 balancing:choice='sqrt' per_rate:flag=True ratios:choice='exact'
drawing:dx.samplers.dlmcf step_size:positive=3.0 balancing:choice='sqrt' per_rate:flag=True ratios:choice='exact'
drawing:dx.samplers.avg step_size:positive=1.0 ratios:choice='exact'
drawing:dx.samplers.pavg step_size:positive=1.0 M:array?=np.eye(4) gamma:number=1.0 ratios:choice='exact'
drawing:dx.samplers.ab_first sigma:positive=0.1 alpha:number=0.5 ratios:choice='exact'
drawing:dx.samplers.ab_diagonal sigma:positive=0.1 alpha:number=0.5 W:array?=np.ones(4) ratios:choice='gradient'
drawing:dx.samplers.ab_shift sigma:positive=0.1 alpha:number=0.5 W:array?=np.eye(4) ratios:choice='exact'
drawing:dx.samplers.ab_max sigma:positive=0.1 alpha:number=0.5 W:array?=np.eye(4) ratios:choice='exact'
    ties:choice='trace'
drawing:dx.samplers.ab_trace sigma:positive=0.1 alpha:number=0.5 W:array?=np.eye(4) ratios:choice='exact'
drawing:dx.samplers.swap path_length:positive=1.0 balancing:choice='sqrt' ratios:choice='exact'
drawing:dx.samplers.swap_uniform path_length:positive=1.0
drawing:dx.samplers.swendsen_wang
drawing:dx.samplers.wolff
drawing:dx.samplers.global_flip
drawing:dx.samplers.cycle first!:sampler='rwm' second!:sampler='gibbs'
drawing:dx.samplers.mixture first!:sampler='rwm' second!:sampler='gibbs' weights:array?=[1.,2.]
drawing:dx.samplers.on_sites sampler:sampler='rwm' sites:codes=mask
drawing:dx.samplers.sgdld step_size:positive=0.3 cache:flag=True polyak:flag=True balancing:choice='sqrt'
    moves:choice='auto' exact:flag=True temperature:positive?=1.0 weigh:choice='steps'
drawing:dx.samplers.local_search cache:flag=True
weighing:dx.samplers.Power alpha:number=0.5 -- alpha/several-numbers
dx.samplers.build_kernel sampler:sampler='pas' target:target=spins
dx.samplers.get_sampler name:choice='pas'
schedules.Constant value:number=0.5
schedules.Geometric start:positive=1.0 rate:positive=0.9 floor:positive0=1e-30
schedules.Power scale:positive=1.0 offset:positive0=1.0 floor:positive0=0.1 exponent:number=0.5
solving_module.BetaSchedule hot:positive0=0.1 cold:positive=2.0 kind:choice='geometric'

dx.exact.law target:target=spins limit:count=100 -- limit/huge
dx.exact.draw key:key=key target:target=spins num:size=3
dx.exact.check_kernel kernel:sampler=kernel target:target=spins key:key?=key num_chains:size=300 num_steps:count=2
    num_convergence_steps:count=2 threshold:probability=1e-6
dx.exact.walk key:key=key target:target=spins kernel:thing=kernel x:codes=states num_steps:count=1 num_rounds:count0=1
dx.exact.chain_law target:thing=chain
dx.exact.chi_square counts:array=counts probabilities:array=uniform4 -- counts/integers
dx.exact.total_variation p:array=uniform4 q:array=uniform4
dx.exact.square_ising shape:shape=(4,4) coupling:positive0=0.4
dx.exact.bernoulli_optimum probs:array=probabilities balancing:function=square_root
dx.exact.scaling probs:array=probabilities balancing:function?=square_root
dx.exact.scaling_at target:target=spins states:codes=states balancing:function?=square_root
dx.exact.best_exponent r:array=probabilities

dx.diagnostics.ess values:array=draws rule:choice='first_negative' mean:number?=0.0
dx.diagnostics.autocorrelation values:array=draws mean:number?=0.0
dx.diagnostics.diagnose name:choice='lp' values:array=draws weights:array?=positive_draws -- name/unknown-name
    name/wrong-type
dx.diagnostics.weighted_ess values:array=draws weights:array=positive_draws
dx.diagnostics.weighted_mean values:array=draws weights:array=positive_draws
dx.diagnostics.weighted_rhat values:array=draws weights:array=positive_draws
dx.diagnostics.effective_weights weights:array=positive_draws
dx.diagnostics.is_constant values:array=draws -- values/NaN
result.mean function:function?=None
dx.curvature.exact_hessian target:target=spins
dx.curvature.Hessian matrix:array=np.eye(3) origin:sentence='mine' is_exact:flag=False
dx.curvature.lambda_shift W:array=np.eye(3) floor:positive=.001
dx.curvature.smallest_norm W:array=np.eye(3) method:choice='auto' tolerance:positive=.001 max_iterations:count=20
dx.curvature.smallest_trace W:array=np.eye(3) method:choice='auto' tolerance:positive=.001 max_sweeps:count=20

dx.problems.Graph.from_edges edges:array=edges weights:array?=[1.,2.,3.] num_nodes:size?=4 node_weights:array?=four
    names:thing?=('a','b','c','d')
dx.problems.Graph.of graph:thing=edges
dx.problems.read_graph path:in_file=graph_file format:choice?=None
solving:dx.problems.MaxCut graph:thing=edges
solving:dx.problems.MaxCut graph:array=edges
solving:dx.problems.MIS graph:thing=edges penalty:positive=1.0001 weighted:flag=False
solving:dx.problems.MaxClique graph:in_file=graph_file penalty:positive=1.0001 weighted:flag=False
solving:dx.problems.Partition graph:array=edges num_parts:size=2 balance:positive0=1.0
solving:dx.problems.QUBO Q:array=matrix offset:number=0.0 vartype:choice='BINARY' names:thing?=None
solving:dx.problems.QUBO Q:array=four edges:array=edges weights:array=[1.,2.,3.]
solving:dx.problems.QUBO Q:in_file=qubo_file
solving:dx.problems.QUBO Q:array=matrix exactly:array?=2 groups:array?=None
solving:dx.problems.QUBO Q:array=matrix at_least:array?=[0,1] at_most:array?=1 groups:array?=[0,0,1,1]
solving:dx.problems.Polynomial terms:thing={(0,1,2):1.,(0,):-1.} sense:choice='min' vartype:choice?='SPIN'
solving:dx.problems.MaxSAT clauses:in_file=formula_file penalty:positive?=2.0
solving:dx.problems.MaxSAT clauses:thing=[[1,-2],[2,3]] weights:array?=[1.,2.]
dx.problems.BinaryQuadratic linear:array=four edges:array=edges weights:array=[1.,2.,3.] offset:number=0.0
solving:dx.problems.Custom function:function=quadratic space:space=bits violations:function?=None
    repair:function?=None sense:choice='max' penalty:positive0=1.0
dx.problems.FacilityLocation.simulated seed:seed=0 num_facilities:size=2 num_customers:size=3 ratio:positive=5.0
    spread:positive0=0.7 law:choice='lognormal' batch_size:size=1 -- batch_size/huge
dx.problems.FacilityLocation opening:array=[1.,2.] transport:array=np.ones((2,3)) capacity:array=[5.,5.]
    penalty:array?=[9.,9.] demand:array=[1.,1.,1.] spread:positive0=0.5
    law:choice='lognormal' batch_size:size=1 -- batch_size/huge
dx.problems.FacilityLocation.from_orlib fixed:array=[1.,2.] capacity:array=[5.,5.] demand:array=[1.,1.,1.]
    cost:array=np.ones((2,3)) penalty:array?=[9.,9.] spread:positive0=0.5
    law:choice='bernoulli' batch_size:size=1 -- batch_size/huge
dx.problems.ApproximateCircuit.simulated seed:seed=0 num_units:size=2 batch_size:size=1 -- batch_size/huge
dx.problems.ApproximateCircuit multiplies:codes=[True]*15 num_units:size=2 batch_size:size=1 -- batch_size/huge
generators.erdos_renyi num_nodes:size=6 density:probability=0.5 seed:seed=0 -- seed/several-numbers
generators.barabasi_albert num_nodes:size=6 attached:size=2 seed:seed=0 -- seed/several-numbers
generators.rb_model num_cliques:size=3 clique_size:size=3 tightness:probability=0.3 ratio:positive?=0.8 seed:seed=0
    is_planted:flag=False -- seed/several-numbers
first_two:generators.er_set low:size=4 high:size=6 density:probability=0.5 count:count0=2 seed:seed=0 -- count/huge
first_two:generators.ba_set low:size=4 high:size=6 attached:size=2 count:count0=2 seed:seed=0 -- count/huge
first_two:generators.rb_set count:count0=1 seed:seed=0 -- count/huge
dx.solve key:key=key problem:thing=cut search:choice?='sites' num_steps:count?=4 init:codes?=states
    progress:flag=False
dx.solve key:key=key problem:thing=cut seconds:positive?=0.1 progress:flag=False -- seconds/infinite
dx.solve key:key=key problem:thing=cut search:choice?='anneal' num_steps:count?=4 devices:count?=None
    init:codes?=states progress:flag=False
dx.solve_many key:key=key problems:thing=cuts search:choice?='anneal' num_steps:count?=4 devices:count?=None
    init:thing?=None progress:flag=False
applied:dx.searches.Sites num_chains:size?=2 schedule:choice='auto' betas:array?=(0.1,2.0) num_rounds:count?=2
    reheat:probability?=0.1 num_threads:size?=2 -- betas/integers betas/bool betas/float16
applied:dx.searches.Anneal sampler:sampler='pas' num_chains:size?=2 schedule:choice='auto' betas:array?=(0.1,2.0)
    num_rounds:count?=2 reheat:probability?=0.1 -- betas/integers betas/bool betas/float16
applied:dx.searches.Temper sampler:sampler='auto' num_chains:size?=2 betas:array?=(0.1,2.0) num_rungs:size?=3
    clusters:flag?=None -- betas/integers betas/bool betas/float16
applied:dx.searches.Population num_chains:size?=2 schedule:choice='auto' betas:array?=(0.1,2.0) -- betas/integers
    betas/bool betas/float16
solve_into folder:out_folder?='search'
dx.Solution.load folder:in_folder=searched problem:thing=cut number:thing=0
solution.save path:out_file='solution.json'
solving_module.minimise_expected key:key=key target:target=sites sampler:sampler='sgdld' num_chains:size=2
    num_steps:count=4 init:codes?=site_states num_rescoring:count=4 num_evaluation:count=4
solving_module.sample_average target:thing=sites num_scenarios:size=2 seconds:positive=1.0 seed:seed=0
    num_evaluation:count=4
dimod_sample bqm:thing=bqm beta_range:array?=(0.1,2.0) num_reads:size?=2 num_sweeps:count0?=4
    num_sweeps_per_beta:count=1 beta_schedule_type:choice='geometric' seed:seed?=0 interrupt_function:function?=None
    initial_states:thing?=None initial_states_generator:choice='random' -- beta_range/integers beta_range/bool
    beta_range/float16 interrupt_function/returns-None interrupt_function/returns-NaN
    interrupt_function/returns-complex interrupt_function/returns-a-string interrupt_function/returns-a-vector
dimod_module.quadratic_of bqm:thing=bqm

drawn:dx.learn.from_function function:function=parametric parameters:thing=np.ones(4) space:space=bits
drawn:dx.learn.NetworkModel network:function=quadratic space:space=square base:array?=np.zeros((2,2))
    bias:array?=np.zeros((2,2))
dx.learn.PairwisePotts couplings:array=np.zeros((4,3,4,3)) fields:array=logits43
dx.learn.PairwisePotts.untrained frequencies:array=np.full((4,3),1/3)
dx.learn.convnet key:key=key shape:shape=(16,16) num_levels:size=2 quadratic:flag=False
dx.learn.resnet key:key=key shape:shape=(8,8) num_levels:size=2 width:size=4 num_blocks:size=2
    frequencies:array?=np.full((8,8),.5)
dx.learn.random_couplings key:key=key num_sites:size=4 scale:number=0.01
dx.learn.frequencies rows:codes=rows num_levels:size=2 -- rows/too-many-axes
dx.learn.mmd a:codes=rows b:codes=rows -- a/negative a/too-large a/fraction b/negative b/too-large b/fraction
dx.learn.marginal_error a:codes=rows b:codes=rows num_levels:size=2
dx.learn.covariance_error a:codes=rows b:codes=rows num_levels:size=2
dx.learn.rbm_log_Z machine:thing=machine
dx.log_normaliser key:key=key target:target=spins method:choice='annealing' reference:array?=probabilities
    sampler:sampler?='gibbs' progress:flag=False num_chains:size=2 num_temperatures:size=4 steps:count=1
    devices:count?=None
dx.log_normaliser key:key=key target:target=spins method:choice='population' reference:array?=probabilities
    sampler:sampler?='gibbs' progress:flag=False num_particles:size=4 num_populations:size=2 steps:count=1
    ess:probability=0.5
dx.anneal_population key:key=key target:target=spins num_particles:size=4 num_populations:size=2
    sampler:sampler?='gibbs' steps:count=1 ess:probability=0.5 reference:array?=probabilities progress:flag=False
dx.scan_temperatures key:key=key target:target=spins betas:array=[.1,.2,.3] sampler:sampler?='gibbs'
    observables:thing?={'sum':np.sum} num_chains:size=2 num_warmup:count0=2 num_samples:size=4 thinning:count=1
    init:codes?=state -- betas/wrong-size betas/float16
dx.learn.ais key:key=key target:target=machine reference:array?=probabilities num_chains:size=2 num_temperatures:size=4
    sampler:sampler='gibbs' steps:count=1 devices:count?=None progress:flag=False
dx.learn.mixing_curves key:key=key target:target=machine samplers:thing={'gibbs':'gibbs'} init:codes=states
    num_steps:count=4 num_chains:size=2 num_warmup:count0=0 every:count=2 progress:flag=False
dx.learn.snapshots key:key=key target:target=machine sampler:sampler='gibbs' num_chains:size=2 num_steps:count=4
    every:count=2 num_warmup:count0=0 init:codes?=states progress:flag=False
dx.learn.train_rbm key:key=key data:codes=rows num_hidden:size=3 num_levels:size=2 num_gibbs:count=1 batch_size:size=4
    num_epochs:count=1 learning_rate:positive=.001 persistent:flag=False progress:flag=False
dx.learn.pcd key:key=key model:target=machine data:codes=rows sampler:sampler='rwm' num_steps:count=1
    num_updates:count=2 batch_size:size=4 buffer_size:size=4 persistent:flag=True
    reshuffle:flag=True optimiser:thing?=None learning_rate:positive=.001 l1:positive0=0.0 weight_decay:positive0=0.0
    ema:probability=0.9 adaptation:choice?=None init:codes?=four_states largest_gap:positive?=None every:count=2
    save_every:count=2 devices:count?=None progress:flag=False -- batch_size/huge every/huge save_every/huge
dx.learn.pcd key:key=key model:target=machine data:codes=rows sampler:sampler='rwm' num_steps:count=1
    num_updates:count=2 batch_size:size=4 buffer_size:size=4 trains:function?=None penalty:function?=None
    refresh:function?=None every:count=2 progress:flag=False -- batch_size/huge every/huge save_every/huge
dx.learn.pcd key:key=key model:target=machine data:codes=rows sampler:sampler='rwm' num_steps:count=1
    num_updates:count=2 batch_size:size=4 buffer_size:size=4 out:out_folder?=None resume:flag=False every:count=2
    progress:flag=False -- batch_size/huge every/huge save_every/huge

data.load_images name:choice='digits' folder:in_folder?=None levels:size?=None -- folder/missing
    folder/file-instead-of-a-folder folder/empty-folder folder/not-a-path folder/impossible-path
data.data_files name:choice='mnist' -- name/unknown-name
data.RowStream rows:thing=(regressors,outcomes) block_rows:count=4 piece_rows:count=2 seed:seed=0 start:count0=0 --
    block_rows/huge piece_rows/huge start/huge
data.write_rows path:out_file='rows_out.npy' make_block:function=block_of_zeros num_rows:size0=4 block_rows:count=2 --
    block_rows/huge

text.read_checkpoint folder:in_folder=checkpoint
text.read_clip folder:in_folder='missing'
text.Infilling model:thing=masked sentence:sentence='the_[MASK]_sat'.replace('_',chr(32)) all_tokens:flag=False
text.infill key:key=key model:thing=masked sentence:sentence='the_[MASK]_sat'.replace('_',chr(32))
    sampler:sampler='gibbs' num_chains:size=2 num_steps:count=2 top:count=1 adaptation:choice?=None
    all_tokens:flag=False progress:flag=False
text.WordPiece vocabulary:thing=['[PAD]','[UNK]','[CLS]','[SEP]','[MASK]','a','b'] lower_case:flag=None
text.corpus_bleu sentences:thing=tokens corpus:thing=tokens
text.self_bleu sentences:thing=tokens
text.unique_ngrams sentences:thing=tokens n:count=2 corpus:thing?=None
text.PromptTarget embed_tokens:function=embed_tokens images:array=embeddings length:size=2 vocabulary:size=512
    batch_size:size=1 -- batch_size/huge
text.sampled_prompts key:key=key target:target=prompts num_chains:size=2 num_steps:count=2 progress:flag=False
text.continuous_relaxation key:key=key target:target=prompts num_runs:size=2 num_steps:count=2
    learning_rate:positive=0.1 weight_decay:positive0=0.1

bench.Budget num_chains:size=2 num_warmup:count0=2 num_samples:size=2 thinning:count=1 -- num_chains/huge
    num_samples/huge num_warmup/huge thinning/huge
bench.find name:choice='any-scale'
bench.call address:choice='discrax.samplers:rwm' -- address/unknown-name
bench_run.run_suites names:thing=(suite_file,) size:choice=quick out:out_folder=bench_folder samplers:thing=()
    seeds:count=1 check:flag=True executor:choice='in-process' workers:count=1 together:flag=True
    retry_failed:flag=False progress:flag=False -- workers/huge samplers/wrong-type
bench_report.write_report run_dir:in_folder=bench_folder out:out_folder?='report_out'
bench_compare.compare_runs run_a:in_folder=bench_folder run_b:in_folder=bench_folder
bench_executors.get_executor name:choice='in-process' workers:count=1 address:sentence?=None
    folder:out_folder='executor_out' -- workers/huge address/wrong-type folder/file-instead-of-a-folder
    folder/cannot-be-written folder/not-a-path folder/impossible-path
"""

COMMANDS = """
demo --side:size=4 --coupling:number=0.3 --num-chains:size=2 --num-warmup:count0=4 --num-samples:size=4
    --out:out_folder=demo
samplers
doctor
completion shell!:choice=bash
data folder!:in_folder={bench_folder}
solve maxcut {graph_file} --steps:count=4 --chains:size=2 --search:choice=sites --schedule:choice=auto
    --rounds:count=2 --reheat:probability=0.1 --seed:seed=0 --out:out_file=solution.json --plot:out_file=plot.png
    --folder:out_folder=search
solve maxcut {graph_file} --seconds:positive=0.1 --chains:size=2 --betas:number=0.1^2.0
solve mis {graph_file} --steps:count=4 --chains:size=2 --search:choice=anneal --sampler:choice=pas
    --penalty:positive=1.5
solve partition {graph_file} --steps:count=4 --chains:size=2 --parts:size=2
solve problem!:choice=maxcut file!:in_file={graph_file} --steps:count=4 --chains:size=2
solve qubo file!:in_file={qubo_file} --steps:count=4 --chains:size=2
solve maxsat file!:in_file={formula_file} --steps:count=4 --chains:size=2
train --data:choice=digits --model:choice=rbm --sampler:choice=rwm --steps:count=1 --updates:count=2 --batch:size=10
    --buffer:size=20 --rate:positive=.001 --hidden:size=4 --levels:size=2 --ema:probability=0.9 --l1:positive0=0.0
    --weight-decay:positive0=0.0 --seed:seed=0 --every:count=2 --save-every:count=2 --out:out_folder=train_out
train --resume --out:in_folder={trained} --updates:count=4
sample --model:in_folder={trained} --sampler:choice=gibbs --chains:size=2 --warmup:count0=0 --steps:count=2
    --snapshots:size=1 --seed:seed=0 --out:out_file=picture.png
infill sentence!:sentence=the^[MASK]^sat --checkpoint:in_folder={checkpoint} --sampler:choice=gibbs --chains:size=2
    --steps:count=2 --top:count=1 --seed:seed=0 --out:out_file=filled.json
stochastic law --step:positive=0.1 --batch:size=1 --chains:size=2 --draws:size=4 --seed:seed=0
stochastic regression --rows:size=40 --batch:size=4 --step:positive=0.1 --chains:size=2 --draws:size=4 --seed:seed=0
stochastic regression --data:in_file={row_file} --outcomes:in_file={outcome_file} --inclusion:probability=0.5
    --batch:size=4 --chains:size=2 --draws:size=4
stochastic facilities --facilities:size=2 --customers:size=3 --steps:count=4 --chains:size=2 --hot:positive=200
    --scenarios:size=2 --seconds:positive=1 --seed:seed=0
stochastic circuit --units:size=2 --steps:count=2 --batch:size=1 --seed:seed=0
stochastic prompt --length:size=2 --steps:count=2 --chains:size=2 --seed:seed=0
stochastic prompt --checkpoint:in_folder=missing_clip --images:in_file={embeddings_file}
bench list size!:choice=QUICK
bench run suites!:in_file={suite_file} --quick --out:out_folder={bench_folder} --executor:choice=in-process
    --workers:count=1
bench run suites!:choice={suite_file} --quick --out:out_folder=own_run --sampler:choice={kernel_file}:TwoFlips
bench run {suite_file} --quick --out:out_folder=part_run --only:choice=task=bernoulli --set:choice=steps=20
    --seeds:count=1 --if-changed:choice=refuse --data:in_folder={bench_folder}
bench report folder!:in_folder={bench_folder} --out:out_folder=report_out
bench compare first!:in_folder={bench_folder} second!:in_folder={bench_folder}
bench export folder!:in_folder={bench_folder} out!:out_file=rows.parquet --suites:choice={suite_file}
bench leaderboard runs!:in_folder={bench_folder} --out:out_folder=ranks
"""
