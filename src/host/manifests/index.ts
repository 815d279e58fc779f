export { ManifestDeployer } from './deployer.ts';
