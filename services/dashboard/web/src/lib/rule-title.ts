/** Returns a rule's name as its messages say it: `Slow checkout`. */
export function titleOf(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
