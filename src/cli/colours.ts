/** Whether a command may colour its output: on a terminal, unless NO_COLOR is set (https://no-color.org). */
export function usesColours(
  stream: { readonly isTTY?: boolean },
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}
