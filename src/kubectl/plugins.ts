/** Plug-ins: executables on PATH whose names start with `kubectl-`. Source: k8s.io/kubectl/pkg/cmd/plugin. */
import { ClientError } from './core/errors.ts';
import type { System, VerbContext } from './port.ts';

const PREFIX = 'kubectl-';

const baseName = (path: string): string => path.split('/').at(-1) ?? '';

/**
 * Runs the plug-in with the longest name that the first arguments form: `foo bar-baz` runs `kubectl-foo-bar_baz`.
 * Resolves with undefined if there is none.
 */
export async function runPlugin(system: System, argv: readonly string[]): Promise<number | undefined> {
  const end = argv.findIndex((each) => each.startsWith('-'));
  const words = argv.slice(0, end < 0 ? argv.length : end);
  if (words.length === 0 || words.some((word) => word.includes('/'))) return undefined;
  const installed = await system.programs(PREFIX, () => {});
  for (let count = words.length; count > 0; count -= 1) {
    const name =
      PREFIX +
      words
        .slice(0, count)
        .map((word) => word.replaceAll('-', '_'))
        .join('-');
    const path = installed.find((each) => baseName(each) === name);
    if (path !== undefined) return system.runProgram(path, argv.slice(count));
  }
  return undefined;
}

/** Code of `plugin list`, which prints the plug-ins on PATH. */
export async function run(context: VerbContext): Promise<number> {
  const { io, system, flags, verbs } = context;
  const paths = await system.programs(PREFIX, (directory, reason) =>
    io.err(`Unable to read directory "${directory}" from your PATH: ${reason}. Skipping...\n`),
  );
  if (paths.length === 0) throw new ClientError('unable to find any kubectl plugins in your PATH');
  io.out('The following compatible plugins are available:\n\n');
  const seen = new Map<string, string>();
  let warnings = 0;
  const warn = (text: string): void => {
    warnings += 1;
    io.err(`  - warning: ${text}\n`);
  };
  for (const path of paths) {
    const name = baseName(path);
    io.out(`${flags.bool('name-only') ? name : path}\n`);
    const words = name.slice(PREFIX.length).split('-');
    const first = seen.get(name);
    if (verbs.some((verb) => verb.name === words.join(' ')))
      warn(`${name} overwrites existing command: "kubectl ${words.join(' ')}"`);
    else if (first !== undefined) warn(`${path} is overshadowed by a similarly named plugin: ${first}`);
    else seen.set(name, path);
  }
  if (warnings > 0)
    throw new ClientError(warnings === 1 ? 'one plugin warning was found' : `${warnings} plugin warnings were found`);
  return 0;
}
