//! A tokenizer in the formats of all engines, created once.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use louver::engine::EngineOptions;
use louver::vocab::Vocabulary;
use louver_hf_tokenizers::{Encoder, Loaded, VocabOptions};
use tokenizers::Tokenizer;
use toktrie::TokEnv;

use crate::engine::{self, Engine, EngineKind};
use crate::o200k;
use crate::options::{Common, Masks};

/// A tokenizer with its derived forms.
pub(crate) struct Setup {
    pub(crate) vocab: Arc<Vocabulary>,
    tokenizer: Tokenizer,
    path: PathBuf,
    /// Whether Louver prepares masks.
    prepare: bool,
    masks: Masks,
    llguidance: OnceCell<TokEnv>,
    #[cfg(feature = "xgr")]
    xgrammar: OnceCell<xgrammar::TokenizerInfo>,
}

impl Setup {
    /// Loads the tokenizer with this name; `None`, with a message, if it is missing.
    pub(crate) fn load(common: &Common, name: &str) -> Result<Option<Setup>> {
        let path = match name {
            o200k::NAME => o200k::tokenizer_file(&common.out)?,
            _ => common.data("tokenizers").join(name).join("tokenizer.json"),
        };
        if !path.is_file() {
            eprintln!("skipped: the tokenizer {name} is not there (see --data)");
            return Ok(None);
        }
        Ok(Some(Setup {
            prepare: common.prepare,
            masks: common.masks,
            ..Setup::of_file(path, name)?
        }))
    }

    /// Loads a tokenizer's file.
    pub(crate) fn of_file(path: PathBuf, name: &str) -> Result<Setup> {
        // In Harmony some calls do not end the text, so their marker is no stop token here.
        let stop_names = if name == o200k::NAME { vec!["<|return|>".to_owned()] } else { vec![] };
        let options = VocabOptions::default().with_stop_names(stop_names);
        let Loaded { vocab, mut tokenizer, warnings, .. } =
            louver_hf_tokenizers::load(&path, &options)?;
        for warning in warnings {
            eprintln!("warning: {name}: {warning}");
        }
        // Texts are plain: special tokens are not recognised.
        tokenizer.set_encode_special_tokens(true);
        let vocab = Arc::new(vocab);
        Ok(Setup {
            vocab,
            tokenizer,
            path,
            prepare: false,
            masks: Masks::default(),
            llguidance: OnceCell::new(),
            #[cfg(feature = "xgr")]
            xgrammar: OnceCell::new(),
        })
    }

    /// Sets whether special tokens in texts are recognised.
    pub(crate) fn recognizing_specials(mut self, recognized: bool) -> Setup {
        self.tokenizer.set_encode_special_tokens(!recognized);
        self
    }

    /// The tokenizer's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The encoder of texts.
    pub(crate) fn encoder(&self) -> Encoder<'_> {
        Encoder::new(&self.tokenizer, &self.vocab)
    }

    /// Creates new engines with empty caches.
    pub(crate) fn engines(&self, kinds: &[EngineKind]) -> Result<Vec<Box<dyn Engine>>> {
        kinds.iter().map(|&kind| self.engine(kind)).collect()
    }

    /// Creates a new engine.
    pub(crate) fn engine(&self, kind: EngineKind) -> Result<Box<dyn Engine>> {
        Ok(match kind {
            EngineKind::Louver => {
                let louver = engine::Louver::new(&self.vocab, EngineOptions::default())?;
                Box::new(louver.preparing(self.prepare).handing_over(self.masks))
            }
            EngineKind::Llguidance => Box::new(engine::Llguidance::new(self.tok_env()?)?),
            #[cfg(feature = "xgr")]
            EngineKind::Xgrammar => {
                Box::new(engine::xgrammar::Xgrammar::new(self.tokenizer_info()?)?)
            }
            #[cfg(not(feature = "xgr"))]
            EngineKind::Xgrammar => anyhow::bail!("xgrammar is not built in"),
        })
    }

    /// The tokenizer in llguidance's format.
    pub(crate) fn tok_env(&self) -> Result<&TokEnv> {
        if self.llguidance.get().is_none() {
            let _ = self.llguidance.set(engine::tok_env(&self.path)?);
        }
        self.llguidance.get().ok_or_else(|| anyhow::anyhow!("no tokenizer for llguidance"))
    }

    /// The tokenizer in xgrammar's format.
    #[cfg(feature = "xgr")]
    pub(crate) fn tokenizer_info(&self) -> Result<&xgrammar::TokenizerInfo> {
        if self.xgrammar.get().is_none() {
            let _ = self.xgrammar.set(engine::xgrammar::tokenizer_info(&self.path, &self.vocab)?);
        }
        self.xgrammar.get().ok_or_else(|| anyhow::anyhow!("no tokenizer for xgrammar"))
    }
}
