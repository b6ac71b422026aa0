"""A module's tests are where its name says, or where the list here says."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]

# Files, and one folder, that are about no module in particular.
SEVERAL = {
    "estimators": "what every estimator promises; `test_every_estimator.py` is the gate that a new one goes through",
    "benchmarks/test_examples": "examples in docstrings of benchmarks",
    "learning/test_fits": "maximum likelihood, MAP and EM on the same releases",
    "private/test_before_the_charge": "what a fit needs is there before anything is spent",
    "private/test_engines": "the same records through every engine, as docs/engines.md has them",
    "private/test_forks": "no sampler keeps random bits where a fork would copy them",
    "private/test_from_outside": "what decides noise cannot be set from outside",
    "private/test_outside_is_not_trusted": "wrong numbers from solvers change no exact statistic",
    "test_adding_pages": "the pages on adding an operator, a method and a subject",
    "test_docstrings": "docstrings of all public names",
    "test_documentation": "code, commands and links of all pages",
    "test_imports": "who may import what",
    "test_names_of_tests": "this file",
    "test_numbers_of_pages": "numbers of pages against result files",
    "test_package": "the front door, and what importing it promises",
    "test_site": "links of the site",
}

# Modules without a file of their name: part of what the file tests, or helpers of it. A line a file.
TESTED_IN = """
auditing/test_all_cases: cases_base cases_discrete cases_fields cases_other
auditing/test_attack: bounds one_run picture scores
auditing/test_replay: drawn_again movements
auditing/test_replay_mutants: operator_list
auditing/test_scales: matrix_scales
communities/test_block_projection: projection_solvers
communities/test_correlation_newton: devices sparse_minus_constant
communities/test_planted_graphs: community_labels
communities/test_private_block_model: communities_base
communities/test_private_block_model_attacks: exponential_mechanism noisy_power noisy_projection randomised_response
communities/test_sign_sampling: choice
estimators/test_bad_input: collective_em naive_mle
estimators/test_conventions: collective_base opened_table private_base registry table_base vectors_base
estimators/test_files_of_0_3: gone_methods
estimators/test_fit: public_graph
estimators/test_for_pgmpy_users: display elimination
fields/test_feature_matrices: parity_features
fields/test_field_base: private_binary_mrf private_ising private_pairwise
fields/test_maximum_entropy: analysis_of_variance contrasts mean_features persistent_gibbs sparse_moment_fit
fields/test_noisy_interactions: interactions
fields/test_noisy_parities: field_scopes least_noise
fields/test_parity_rounds: perturbed_leader
fields/votes/test_block_graphs: edge_voting proximal vote_operators
fields/votes/test_stable_structure: votes_base
gaussian/test_graphical_lasso: log_determinant precision_fits
gaussian/test_graphical_models: gaussian_distribution
gaussian/test_noisy_moments: output_perturbation precision
gaussian/test_private_graphical_lasso: gaussian_pairs moments_base pair_correlations
inference/test_junction_tree: belief_propagation cliques sum_product
inference/test_loopy_belief_propagation: exact_or_loopy
learning/test_expectation_maximisation: objective
learning/test_fits: maximum_a_posteriori maximum_likelihood noisy_marginals published_em tilted_family
learning/test_prior_model: interaction_split
learning/test_public_tables: proportional_fitting
linked/test_linked_cli: ask_linked
linked/test_linked_model: family_draws family_view slot_draws wide_table
linked/test_linked_model_posterior: linked_report slots
linked/test_unit_rows: linked_schema linked_tables unit_kinds
linked/test_linked_discovery: made_up
mixtures/test_block_operators: cluster_operators vector_sums
mixtures/test_gaussian_mixture: kmeans mixture_covariances
mixtures/test_membership_program: batched_membership
mixtures/test_noisy_centres: mixture_shares
models/test_decoding: decoded_columns evidence
models/regression/test_declared_analyses: formula independence_test regression_fit score_equations score_rounds
models/test_markov_network: conversion model_file
models/test_model_score: model_distances placed_model score_reading scored_model
models/test_number_density: fine_grids
private/test_accounting: checks
private/test_from_outside: trusted_types turns
private/test_ledger: adjacency budget discovered filter guarantee
private/test_ledger_file: atomic_file
private/test_matrix: wishart
private/test_reading_at_edges: data_files owners producers records source_base sources variables
private/test_reading_odd_cells: arrow_cells
private/test_regressions: one_thread
private/test_noise_scripted_coins: subsampling
private/test_outside_is_not_trusted: silence
private/test_schedule: regression_path
private/test_sensitive: named_values
private/test_solutions: vector_operators
private/test_table: coding data_base joint_tables table_facts
private/test_text_file: header
private/test_units: contributions
reporting/test_model_report: attacks comparison drawing marginals page words
schema/test_number: date
schema/test_table_schema: entries intervals labels provenance reading stored
sequences/test_sequences: sequence_operators
tables/collective/test_gradient_ascent: gradients
tables/networks/test_adaptive_search: budget_shares candidates search_policy
tables/networks/test_private_network: network_posterior private_chow_liu structure_base
tables/networks/test_private_network_classifier: joined_target
tables/networks/test_private_network_probes: probe_tables
tables/publishing/test_publish_if: noisy_test
tables/test_discovery: category_search
tables/test_preview: table_plan
tables/test_schema_check: few_records
test_cli: __main__ signals
test_package: front_door
test_plotting: correlation_plots plots
theory/test_planning: feasibility published_table
theory/test_sample_complexity: lower_bounds order
"""


def stems(folder: str, pattern: str) -> list[Path]:
    """Files below a folder, relative to it, without their ending."""
    return sorted(path.relative_to(ROOT / folder).with_suffix("") for path in (ROOT / folder).glob(pattern))


TESTS = stems("tests", "**/test_*.py")
MODULES = [path for path in stems("pgmpy_dp", "**/*.py") if path.name != "__init__"]
FOLDERS = [path.parent for path in stems("pgmpy_dp", "**/__init__.py") if path.parent.name]
# A file may also be named after a page, a benchmark, or what helps the tests or is beside the package.
OTHERS = [Path("benchmarks") / path for path in stems("benchmarks", "*.py")] + [Path("benchmarks/results")]
OTHERS += [Path(path.name.replace("-", "_")) for path in stems("docs", "*.md")] + [Path("tutorials")]
OTHERS += [path for path in stems("tests", "*.py") if path not in TESTS]


def is_of(test: Path, subject: Path) -> bool:
    """tests/A/test_c.py, or test_c_and_more.py, is of c wherever it is below A."""
    name = test.name.removeprefix("test_")
    named = name == subject.name or name.startswith(f"{subject.name}_")
    return named and test.parent.parts == subject.parts[: len(test.parent.parts)]


def test_every_file_of_tests_is_named_after_something():
    several = [path for path in TESTS if str(path) in SEVERAL or str(path.parent) in SEVERAL]
    assert set(SEVERAL) == {name for path in several for name in (str(path), str(path.parent)) if name in SEVERAL}
    subjects = MODULES + FOLDERS + OTHERS
    nameless = [str(path) for path in TESTS if path not in several and not any(is_of(path, of) for of in subjects)]
    assert nameless == []  # rename it after its module, or say in SEVERAL why it has none


def test_every_module_has_a_file_of_its_name_or_a_line_in_the_list():
    lines = [line.split(": ") for line in TESTED_IN.strip().split("\n")]
    listed = [name for _, names in lines for name in names.split()]
    assert {Path(file) for file, _ in lines} <= set(TESTS) and len(listed) == len(set(listed))
    nameless = [path for path in MODULES if not any(is_of(test, path) for test in TESTS)]
    assert set(listed) <= {path.name for path in nameless}  # it has a file of its name by now
    # test_curator.py is of all in the folder curator that nothing else is of; it stands beside the folder, or in it.
    whole = {of for of in FOLDERS for place in (of.parent, of) if place / f"test_{of.name}" in TESTS}
    missing = [str(path) for path in nameless if path.name not in listed and whole.isdisjoint(path.parents)]
    assert missing == []  # write its tests, or say where they are
