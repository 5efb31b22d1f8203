// Asynchronous values for components. The previous value is kept until the next one has arrived, to avoid flicker.

import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  value: T | undefined;
  error: string | undefined;
}

/** The message of anything that was thrown. */
export const sentence = (error: unknown) => (error instanceof Error ? error.message : String(error));

export function useLoaded<T>(load: () => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [loaded, set] = useState<Loaded<T>>({ value: undefined, error: undefined });
  useEffect(() => {
    let wanted = true;
    load().then(
      (value) => wanted && set({ value, error: undefined }),
      (error: unknown) => wanted && set((old) => ({ value: old.value, error: sentence(error) })),
    );
    return () => {
      wanted = false;
    };
  }, inputs);
  return loaded;
}
