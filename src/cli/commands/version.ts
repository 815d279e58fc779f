import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../base/version.ts';
import type { Command } from '../command.ts';
import { OUTPUT_FLAG, printDocument } from '../printers.ts';

export const versionCommand: Command = {
  usage: 'version [-o json|yaml]',
  summary: 'Shows the versions of this executable and of what it serves.',
  flags: { output: OUTPUT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const versions = {
      hyperedge: PRODUCT_VERSION,
      kubernetes: KUBERNETES_VERSION.gitVersion,
      node: process.version,
      platform: `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    };
    const document = await printDocument(flags, versions);
    out.stdout(
      document ??
        `hyperedge ${versions.hyperedge} (Kubernetes ${versions.kubernetes}, Node ${versions.node}, ${versions.platform})\n`,
    );
    return 0;
  },
};
