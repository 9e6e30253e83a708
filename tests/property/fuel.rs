//! Masks with less fuel than they need: see `louver::fuel`.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions, Matcher};
use louver::ids::TokenId;
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{MASK_CONFIGURATIONS, STEPS, Shown, config, generate};
use crate::harness::columns::mask;

/// How often a mask or a token is retried. Each try keeps what the earlier ones finished.
const TRIES: usize = 12;

/// Options without limits, apart from the fuel of a mask.
fn constraint_options(change: impl FnOnce(&mut EngineOptions), mask_fuel: u64) -> EngineOptions {
    let mut options = crate::harness::unlimited();
    change(&mut options);
    let limits = options.limits.clone().with_mask_fuel(mask_fuel);
    options.with_limits(limits)
}

/// The mask, after as many tries as it takes; None where the fuel never suffices.
fn retry_mask(
    matcher: &mut Matcher,
    vocab: &Vocabulary,
) -> Result<Option<Vec<bool>>, TestCaseError> {
    for _ in 0..TRIES {
        let made = mask(matcher, vocab);
        if matcher.limit().is_none() {
            return Ok(Some(made));
        }
        let stops = |(id, &allowed): (usize, &bool)| !allowed || vocab.is_stop(TokenId::new(id));
        prop_assert!(
            made.iter().enumerate().all(stops),
            "only stop tokens where the work was given up"
        );
        matcher.rollback(0);
    }
    Ok(None)
}

/// Takes a token, after as many tries as it takes; false where the fuel never suffices.
fn retry_advance(matcher: &mut Matcher, token: TokenId) -> Result<bool, TestCaseError> {
    for _ in 0..TRIES {
        match matcher.advance(token) {
            Ok(()) => return Ok(true),
            Err(AdvanceError::Limit { .. }) => {}
            Err(error) => return Err(TestCaseError::fail(format!("token {token}: {error}"))),
        }
    }
    Ok(false)
}

proptest! {
    #![proptest_config(config(250))]

    /// A mask that is made is exact, also after earlier ones were given up: nothing unfinished is
    /// kept.
    #[test]
    fn masks_on_little_fuel_are_exact_or_limited(
        Shown(grammar) in generate::grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in proptest::collection::vec(any::<u16>(), STEPS),
        fuel in 1..600u64,
    ) {
        let vocab = Arc::new(vocab.build());
        for (name, change) in MASK_CONFIGURATIONS {
            let compile_with_fuel = |fuel| {
                Engine::new(vocab.clone(), constraint_options(change, fuel)).compile(&grammar)
            };
            let (Ok(ample), Ok(scarce)) = (compile_with_fuel(200_000), compile_with_fuel(fuel))
            else {
                return Ok(());
            };
            let (mut reference, mut matcher) = (ample.matcher(), scarce.matcher());
            for choice in &path {
                let want = mask(&mut reference, &vocab);
                if reference.limit().is_some() {
                    break;
                }
                let Some(got) = retry_mask(&mut matcher, &vocab)? else { break };
                prop_assert_eq!(&got, &want, "{}, after {:?}", name, matcher.tokens());
                let allowed: Vec<usize> = (0..want.len()).filter(|&id| want[id]).collect();
                let Some(&id) = allowed.get(usize::from(*choice) % allowed.len().max(1)) else {
                    break;
                };
                let token = TokenId::new(id);
                if reference.advance(token).is_err() || !retry_advance(&mut matcher, token)? {
                    break;
                }
            }
        }
    }
}
