"""What each sign of a chain is worth, as `python -m polyhop.optimizers.selector` has fitted it."""

from .signs import End, Signs

FIRST = Signs(
    rank=-0.4,
    ahead=-0.4,
    bm25=0.101,
    cover=-3.07,
    sentence=7.32,
    opening=3.03,
    words=0.897,
    named=4.14,
    whole=0.599,
    taken=0.0,
    link=0.0,
    back=0.0,
    shared=0.0,
    both=0.0,
    tied=0.0,
    answer=0.0,
    part=0.0,
    step=1.18,
    step_share=1.18,
    copy=0.0,
)

NEXT = Signs(
    rank=0.479,
    ahead=-0.924,
    bm25=-0.188,
    cover=-8.4,
    sentence=4.32,
    opening=3.55,
    words=4.53,
    named=2.59,
    whole=1.69,
    taken=2.58,
    link=1.16,
    back=0.469,
    shared=2.51,
    both=-2.18,
    tied=2.63,
    answer=0.396,
    part=0.898,
    step=2.37,
    step_share=1.19,
    copy=-5.86,
)

END = End(
    always=6.93,
    alone=-2.81,
    single=-0.822,
    short=-0.582,
    pairs=-1.35,
    beyond=0.218,
    left=-1.73,
    length=-0.842,
    names=0.404,
    closed=-0.0951,
    joint=0.781,
)
