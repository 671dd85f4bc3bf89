"""Checks of the Helm chart: its tools, its renders, its schema, its golden files.

    tools.py    Helm, the evaluator of pod security, a Redis as new as the chart's
    render.py   the chart rendered without a cluster
    schema.py   values.schema.json, from the settings classes of the services
    golden.py   what every set of values renders to, as files

`python -m weir_chart` writes what is generated anew (`make chart`).
"""
