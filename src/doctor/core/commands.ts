/** Adapts the commands of fixes to this host: names of programs, root directory and kubeconfig. */
import { shell } from './check.ts';

export interface HostCommands {
  /** Text that starts this program in a command: `hyperedge`, or the quoted path of the executable. */
  readonly program: string;
  /** Root directory of the installation. */
  readonly root: string;
  /** Kubeconfig for `hyperedge kubectl`, which also works on hosts without kubectl. */
  readonly kubeconfig: string;
}

/** Matches programs at the beginning of a command, with their arguments. */
const COMMAND = /(^|&& |\|\| |; |\| |\bdo )(hyperedge|kubectl|master-logs)((?: (?!&&|\|)(?:'[^']*'|[^\s;'])+)+)/g;
const COMMENT = '    # ';
const WITH_ROOT = /^ (?:config|doctor|image|members|run|snapshot|status)\b/;

/**
 * Returns the fix with the programs and options of this host. Fixes of checks contain plain names. Comments are kept.
 */
export function forHost(fix: string, { program, root, kubeconfig }: HostCommands): string {
  const [code = '', ...comments] = fix.split(COMMENT);
  const flag = root === '/' ? '' : ` --root ${shell(root)}`;
  const commands = code.replace(COMMAND, (_, before: string, name: string, rest: string) => {
    if (name === 'kubectl') return `${before}${program} kubectl --kubeconfig ${shell(kubeconfig)}${rest}`;
    const called = name === 'hyperedge' ? `${program}${rest}` : `${program} ${name}${rest}`;
    const isComplete = rest.includes(' --root ') || (name === 'hyperedge' && !WITH_ROOT.test(rest));
    return `${before}${called}${isComplete ? '' : flag}`;
  });
  return [commands, ...comments].join(COMMENT);
}
