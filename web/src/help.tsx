// The list of keys, in a native dialog.

import { useEffect, useRef } from "preact/hooks";
import { KEYS } from "./keyboard";
import { views } from "./views/index";

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={close}
      onClick={(e) => e.target === dialog.current && dialog.current?.close()}
    >
      <div>
        <h2 id="help-title">Keys</h2>
        <dl class="pairs">
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <h2>Views</h2>
        <dl class="pairs">
          {views.map((v) => (
            <div key={v.id}>
              <dt>
                <kbd>{v.key}</kbd> {v.title}
              </dt>
              <dd>{v.what}</dd>
            </div>
          ))}
        </dl>
        <p class="muted">The address keeps what you look at: copy it to show somebody else. Words with dots below explain themselves.</p>
        <button type="button" autofocus onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
