"""Draw docs/pictures/plane.png, the picture of the README: python docs/pictures/plane.py"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import skyband as sb

N, K, SEEN = 400, 5, 520
INK, MUTED, BAND, TOP = "#1b2733", "#c3ccd4", "#e08a1e", "#1668b8"


def main() -> None:
    scores = np.random.default_rng(11).random(SEEN)
    monitor = sb.Monitor(sb.TopK(K, by="score", window=sb.Last(N)))
    monitor.push({"score": scores})
    answer = monitor.answer()["id"].to_numpy()
    kept = np.array([i for i in range(SEEN - N, SEEN) if (scores[i + 1 :] >= scores[i]).sum() < K])
    assert len(kept) == monitor.stats()["queries"]["q0"]["objects"]

    plt.rcParams |= {"font.size": 12, "font.family": "DejaVu Sans", "text.color": INK, "axes.labelcolor": INK}
    figure, axes = plt.subplots(figsize=(10, 4.2), dpi=140)
    axes.axvspan(SEEN - N, SEEN, color="#eef3f8", zorder=0)
    band, gone = np.setdiff1d(kept, answer), np.setdiff1d(np.arange(SEEN), kept)
    axes.scatter(gone, scores[gone], s=9, color=MUTED, label=f"forgotten ({N - len(kept)} of the window's {N})")
    axes.scatter(band, scores[band], s=30, color=BAND, label=f"skyband: may still become an answer ({len(band)})")
    axes.scatter(answer, scores[answer], s=70, color=TOP, zorder=3, label=f"the answer now: the best {K}")
    axes.annotate(f"the last {N} arrivals", ((SEEN - N) + 4, 1.04), color=INK, va="center")
    axes.annotate("expired", (4, 1.04), color="#7b8791", va="center")
    axes.set(xlim=(0, SEEN + 6), ylim=(-0.02, 1.1), xlabel="time of arrival →", ylabel="score")
    axes.set_xticks([])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=3, frameon=False, handletextpad=0.2)
    figure.savefig(Path(__file__).with_name("plane.png"), bbox_inches="tight")


if __name__ == "__main__":
    main()
