import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { Command } from '../command.ts';
import { OUTPUT_FLAG, printDocument } from '../printers.ts';

export const versionCommand: Command = {
  usage: 'version [-o json|yaml] [--licenses]',
  summary: 'Shows the versions of this executable, of Kubernetes and of Node.',
  flags: {
    licenses: { type: 'boolean', help: 'print the notices of third-party software in this executable' },
    output: OUTPUT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    if (flags['licenses'] === true) {
      const { thirdPartyNotices } = await import('../../host/process/assets.ts');
      out.stdout(thirdPartyNotices());
      return 0;
    }
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
