import numpy as np

a = np.fromfunction(lambda i, j: (i * 7 + j * 3) % 101, (300, 300)) + 300 * np.eye(300)
print(int((a @ a.T).sum()), f"{np.linalg.solve(a, np.ones(300)).sum():.9f}")
print(f"{np.abs(np.fft.fft(a[0])).max():.6f}", np.sort(a.ravel())[::9000].astype(int).tolist())
np.save("out.npy", a.astype(np.int32))
