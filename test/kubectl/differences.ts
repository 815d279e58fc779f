/** Calls whose output differs from kubectl's on purpose, with the reason. */
export const DIFFERENCES: Readonly<Record<string, string>> = {};
