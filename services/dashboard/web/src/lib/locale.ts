/** A browser's language, made usable. */

/**
 * Replaces a language that is none.
 *
 * Chromium started under a POSIX locale calls its language `en-US@posix`, at which `Intl`
 * throws; uPlot asks for it as soon as it is loaded.
 */
export function mendLanguage(): void {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: "en", configurable: true });
  }
}
