"""Models of run times: what is known of a job when it is submitted, and trees over that.

`keys` jobs that are alike, `features` what is known of them in numbers, `memory` how that is kept up in compiled code,
`trees` LightGBM's text read and evaluated without LightGBM, `model` a model and its folder, `inside` how a simulation
asks it. Models are fitted in `escala.fitting`.
"""
