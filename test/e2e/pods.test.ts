/** All features of a pod spec on a node with real containers. */
import { after, before, describe } from 'node:test';
import { claimTests } from './pods/claims.ts';
import { environmentTests, volumeTests } from './pods/content.ts';
import { nameTests } from './pods/dns.ts';
import { imageTests } from './pods/images.ts';
import { namespaceTests, securityTests } from './pods/isolation.ts';
import { PodLab } from './pods/lab.ts';
import { containerOrderTests, hookTests, probeTests } from './pods/lifecycle.ts';
import { networkTests } from './pods/network.ts';
import { admissionTests, sourceTests, statusTests, submittedTests } from './pods/node.ts';

let lab: PodLab;
const current = (): PodLab => lab;

before(
  async () => {
    lab = await PodLab.create();
  },
  { timeout: 90_000 },
);

after(() => lab?.stop(), { timeout: 90_000 });

describe('pods', { concurrency: 4 }, () => {
  hookTests(current);
  probeTests(current);
  containerOrderTests(current);
  volumeTests(current);
  claimTests(current);
  environmentTests(current);
  imageTests(current);
  securityTests(current);
  namespaceTests(current);
  nameTests(current);
  admissionTests(current);
  statusTests(current);
  sourceTests(current);
  networkTests(current);
  submittedTests(current);
});
