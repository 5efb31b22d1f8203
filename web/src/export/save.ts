// Saves a file through the browser's download.

export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The address must remain valid until the browser has started to read it.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
