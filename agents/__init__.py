"""Everything that answers: models, the local sampler, vLLM engines and teams."""
