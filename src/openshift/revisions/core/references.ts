/** Finds the files of a directory to which a configuration refers. */

const MAX_DEPTH = 32;

/**
 * The members of `names` that strings in `document` refer to, as absolute paths or as paths relative to `directory`. If
 * `sections` is given, only the values of these top-level keys are searched.
 */
export function referredFiles(
  document: unknown,
  directory: string,
  names: ReadonlySet<string>,
  sections?: ReadonlySet<string>,
): string[] {
  const found = new Set<string>();
  const visit = (value: unknown, depth: number): void => {
    if (depth > MAX_DEPTH) return;
    if (typeof value === 'string') {
      const name = relativeName(value, directory);
      if (names.has(name)) found.add(name);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) {
        if (depth > 0 || sections === undefined || sections.has(key)) visit(each, depth + 1);
      }
    }
  };
  visit(document, 0);
  return [...found].sort();
}

function relativeName(text: string, directory: string): string {
  const path = text.startsWith(`${directory}/`) ? text.slice(directory.length + 1) : text;
  return path.startsWith('./') ? path.slice(2) : path;
}
