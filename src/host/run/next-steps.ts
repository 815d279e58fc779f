/** Commands that are printed when the node is Ready. Users can run them exactly as printed. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface NextSteps {
  /** The command line of this executable. */
  readonly program: readonly string[];
  readonly root: string;
  /** Path of the administrator's kubeconfig; undefined on a host that is not a master. */
  readonly kubeconfig: string | undefined;
  /** `PATH` of the environment. */
  readonly searchPath: string;
}

export function nextSteps({ program, root, kubeconfig, searchPath }: NextSteps): string[] {
  const below = root === '/' ? '' : ` --root ${root}`;
  const own = hasProgram('hyperedge', searchPath) ? 'hyperedge' : program.join(' ');
  const steps = [`${own} status${below}`];
  if (kubeconfig === undefined) return steps;
  steps.push(`${own} master-logs api api --tail 20${below}`);
  if (hasProgram('kubectl', searchPath)) steps.push(`kubectl --kubeconfig ${kubeconfig} get nodes,pods -A`);
  return steps;
}

function hasProgram(name: string, searchPath: string): boolean {
  return searchPath.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
