//! Models that would not call the hook for each token are refused.

use std::path::PathBuf;
use std::process;

use louver_mistralrs::{LoadError, Louver};
use mistralrs::TextModelBuilder;
use serde_json::Value;

/// The tiny model with another model type.
fn with_model_type(model_type: &str) -> (PathBuf, TextModelBuilder) {
    let tiny = louver_tiny_model::ensure(&std::env::temp_dir().join("louver-tests")).unwrap();
    let copy = std::env::temp_dir().join(format!("louver-tests-{model_type}-{}", process::id()));
    std::fs::create_dir_all(&copy).unwrap();
    for file in std::fs::read_dir(&tiny.dir).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let path = copy.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["model_type"] = model_type.into();
    std::fs::write(&path, config.to_string()).unwrap();
    let builder = TextModelBuilder::new(copy.display()).with_force_cpu();
    (copy, builder)
}

#[tokio::test(flavor = "multi_thread")]
async fn block_diffusion_models_are_refused() {
    let (dir, builder) = with_model_type("diffusion_gemma");
    let refused = Louver::load(builder.clone()).await.map(|_| ());
    let Err(LoadError::BlockDiffusion { model_type }) = refused else { panic!("{refused:?}") };
    assert_eq!(model_type, "diffusion_gemma");
    let model = builder.build().await.unwrap();
    let refused = Louver::for_model(&model).await.map(|_| ());
    assert!(matches!(refused, Err(LoadError::BlockDiffusion { .. })), "{refused:?}");
    std::fs::remove_dir_all(dir).unwrap();
}
