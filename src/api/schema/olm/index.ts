import { operatorPackages } from './v1.ts';
import { olmPackage } from './v1alpha1.ts';

export const olmPackages = [olmPackage, ...operatorPackages];
