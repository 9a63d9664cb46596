//! `--pipeline` of the commands that record or judge: the stages of a pipeline, in order.

use std::path::Path;

use holdup_load::scenario::pipeline;
use holdup_recording::files;
use holdup_recording::pipeline::Stage;

use super::LARGEST_BYTES;

#[derive(clap::Args)]
pub struct PipelineArgs {
    /// Stages of the pipeline in order, as under `pipeline` in a scenario
    #[arg(long, value_name = "FILE", value_parser = stages)]
    pipeline: Option<Stages>,
}

/// The stages of a file.
#[derive(Clone)]
struct Stages(Vec<Stage>);

impl PipelineArgs {
    /// The stages; empty if no file was given.
    pub fn stages(&self) -> &[Stage] {
        self.pipeline.as_ref().map_or(&[][..], |stages| stages.0.as_slice())
    }
}

fn stages(path: &str) -> Result<Stages, String> {
    let text = files::read_text(Path::new(path), LARGEST_BYTES).map_err(|error| error.to_string())?;
    pipeline::read(&text, path).map(Stages).map_err(|error| error.to_string())
}
