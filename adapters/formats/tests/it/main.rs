//! Wire formats end to end. Cases are data (`../data`), and run through grammar, extractor and
//! renderer.

mod harness;

mod answers;
mod budgets;
mod choices;
mod constraint;
mod customs;
mod cut_off;
mod cuts;
mod detection;
mod docs;
mod earliest;
mod fuzz;
mod generation;
mod lazy;
mod lengths;
mod lenient;
mod matrix;
mod mutation;
mod names;
mod o200k;
mod oracle;
mod protocol;
mod published_schemas;
mod real_calls;
mod rig;
mod shared_automata;
mod special_tokens;
mod spellings;
mod tags;
mod templates;
mod turns;
