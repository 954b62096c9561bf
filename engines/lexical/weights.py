"""The weights of the chain features, fitted on train questions in version 0.1."""

from .chain_features import ExtensionFeatures, StopFeatures

FIRST = ExtensionFeatures(
    rank=-0.402,
    ahead=-0.402,
    bm25=0.118,
    cover=-3.11,
    sentence=7.38,
    opening=3.01,
    words=0.887,
    named=4.07,
    whole=0.636,
    taken=0.0,
    link=0.0,
    back=0.0,
    shared=0.0,
    both=0.0,
    tied=0.0,
    answer=0.0,
    part=0.0,
    step=1.17,
    step_share=1.17,
    copy=0.0,
)

NEXT = ExtensionFeatures(
    rank=0.477,
    ahead=-0.921,
    bm25=-0.195,
    cover=-8.34,
    sentence=4.3,
    opening=3.54,
    words=4.49,
    named=2.57,
    whole=1.7,
    taken=2.58,
    link=1.17,
    back=0.471,
    shared=2.51,
    both=-2.22,
    tied=2.67,
    answer=0.391,
    part=0.898,
    step=2.36,
    step_share=1.2,
    copy=-5.95,
)

END = StopFeatures(
    always=6.93,
    alone=-2.81,
    single=-0.836,
    short=-0.588,
    pairs=-1.35,
    beyond=0.218,
    left=-1.74,
    length=-0.845,
    names=0.405,
    closed=-0.0979,
    joint=0.781,
)
