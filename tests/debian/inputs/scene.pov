#version 3.7;
global_settings { assumed_gamma 1 }
camera { location <0, 2, -5> look_at 0 }
light_source { <5, 5, -5> rgb 1 }
#declare i = 0;
#while (i < 8)
  sphere { <i - 4, 0, i>, 0.8 texture { pigment { rgb <i / 8, 0.5, 0.2> } finish { reflection 0.3 } } }
  #declare i = i + 1;
#end
plane { y, -1 pigment { checker rgb 1 rgb 0.2 } }
