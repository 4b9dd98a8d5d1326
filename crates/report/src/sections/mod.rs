//! Parts of a report that several formats have.

pub(crate) mod adapters;
pub(crate) mod advice;
pub(crate) mod anatomy;
pub(crate) mod captures;
pub(crate) mod ceiling_cost;
pub(crate) mod check;
pub(crate) mod each_direction;
pub(crate) mod host_activity;
pub(crate) mod host_facts;
pub(crate) mod limiter;
pub(crate) mod merit;
pub(crate) mod next_step;
pub(crate) mod one_way;
pub(crate) mod outcome_line;
pub(crate) mod plan_answer;
pub(crate) mod responsiveness;
pub(crate) mod sides;
pub(crate) mod spread;
pub(crate) mod usable;
