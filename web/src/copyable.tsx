// A command or code with a copy button.

import { useState } from "preact/hooks";

/** Copies a text. Where a page opened from a file has no clipboard, the text is selected for Ctrl+C instead. */
async function copy(text: string, shown: HTMLElement | null): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    return document.execCommand?.("copy") ? "Copied" : "Selected: press Ctrl+C";
  }
}

export function Copyable({ text, label, lead }: { text: string; label: string; lead?: string }) {
  const [said, say] = useState("");
  let shown: HTMLElement | null = null;
  const act = async () => {
    say(await copy(text, shown));
    setTimeout(() => say(""), 2000);
  };
  return (
    <div class="copyable">
      {lead && <span class="muted">{lead}</span>}
      <pre
        ref={(e) => {
          shown = e;
        }}
      >
        {text}
      </pre>
      <button type="button" class="copy" data-unexported aria-label={`Copy ${label}`} onClick={() => void act()}>
        {said || "Copy"}
      </button>
      <span class="unseen" role="status">
        {said}
      </span>
    </div>
  );
}
