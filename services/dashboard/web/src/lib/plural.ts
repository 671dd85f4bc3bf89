/** The form of a word that goes with a number. */
export const plural = (n: number, one: string, many = `${one}s`): string => (n === 1 ? one : many);
