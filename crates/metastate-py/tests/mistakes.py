"""Ten mistakes that a type checker must find; `test_types.py` counts them. Never run."""

import metastate as ms

ms.fit([0, 1], rnak=3)
ms.fit([0, 1], refit="likelyhood")
ms.StateAggregation(solver="slow")
ms.StateAggregation(connected="biggest")
ms.StateAggregation(rank="three")
ms.StateAggregation(kind="trajectory")
ms.load(7)
ms.simulate("town")
ms.fit([0, 1]).timescales().vlaue
ms.fit([0, 1]).mfpt("folded", 1)
