"""The paper's experiments, rerun with pictures: `evenhand reproduce`."""
