/** All packages of OpenShift's groups. */
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { imagePackage } from './image.ts';
import { projectPackage } from './project.ts';
import { routePackage } from './route.ts';
import { templatePackage } from './template.ts';

const packages = [imagePackage, projectPackage, routePackage, templatePackage];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
