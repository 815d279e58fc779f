/** Makes the commands of a fix work as printed on this host: names of programs, root directory and kubeconfig. */
import { shell } from './check.ts';

export interface HostCommands {
  /** Command that starts this program, such as `hyperedge` or the quoted path of the executable. */
  readonly program: string;
  /** Root of the installation. */
  readonly root: string;
  /** Kubeconfig of the built-in client, which hosts without kubectl have too. */
  readonly kubeconfig: string;
}

/** Programs at the beginning of a command. */
const COMMAND = /(^|&& |\|\| |; |\| |\bdo )(hyperedge|kubectl|master-logs)((?: (?!&&|\|)(?:'[^']*'|[^\s;'])+)+)/g;
const COMMENT = '    # ';
const WITH_ROOT = /^ (?:config|doctor|image|members|run|snapshot|status)\b/;

/** The text of checks names programs by their plain names; comments are not changed. */
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
